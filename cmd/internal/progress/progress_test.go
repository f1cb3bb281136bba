package progress

import (
	"bytes"
	"os"
	"testing"
	"time"
)

func TestLine(t *testing.T) {
	var b bytes.Buffer
	l := &Line{w: &b, width: func() int { return 6 }, now: func() time.Time { return time.Unix(0, 0) }}
	l.Show(0.5, "%d of %d entries", 1, 2)
	l.Show(0.5, "too soon after the last one")
	l.Println("done")
	l.Clear()
	if want := "\r\x1b[K1 of \r\x1b[Kdone\n"; b.String() != want {
		t.Errorf("%q, want %q", &b, want)
	}
}

// The time left is that of the work left at the speed since the first call; none is
// known before some was done.
func TestTimeLeft(t *testing.T) {
	var b bytes.Buffer
	clock := time.Unix(1000, 0)
	l := &Line{w: &b, width: func() int { return 80 }, now: func() time.Time { return clock }}
	for _, c := range []struct {
		after time.Duration
		share float64
		want  string
	}{
		{0, 0.2, ""}, {time.Minute, 0.2, ""}, // a resumed campaign: 20 % were done before
		{time.Minute, 0.4, ", about 6 min left"}, {20 * time.Second, 0.8, ", about 47 s left"}, {0, 1, ""},
		{100 * time.Hour, 0.7, ", about 60.0 h left"},
	} {
		b.Reset()
		clock = clock.Add(c.after + pause)
		l.Show(c.share, "x")
		if want := "\r\x1b[Kx" + c.want; b.String() != want {
			t.Errorf("%v: %q, want %q", c.share, &b, want)
		}
	}
}

// Pipes and files get the lines that stay, and no escape sequence.
func TestNothingIsDrawnElsewhere(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/stderr")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l := New(f)
	l.Show(0.5, "1 of 2")
	l.Println("done")
	l.Clear()
	if text, err := os.ReadFile(f.Name()); err != nil || string(text) != "done\n" {
		t.Errorf("%q, %v", text, err)
	}
}
