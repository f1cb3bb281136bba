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
	l.Show("%d of %d entries", 1, 2)
	l.Show("too soon after the last one")
	l.Println("done")
	l.Clear()
	if want := "\r\x1b[K1 of \r\x1b[Kdone\n"; b.String() != want {
		t.Errorf("%q, want %q", &b, want)
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
	l.Show("1 of 2")
	l.Println("done")
	l.Clear()
	if text, err := os.ReadFile(f.Name()); err != nil || string(text) != "done\n" {
		t.Errorf("%q, %v", text, err)
	}
}
