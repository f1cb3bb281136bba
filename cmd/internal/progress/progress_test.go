package progress

import (
	"bytes"
	"testing"
)

func TestLine(t *testing.T) {
	for width, want := range map[int]string{6: "\r\x1b[K1 of \r\x1b[Kdone\n", 0: "done\n"} { // 0: a pipe or a file
		var b bytes.Buffer
		l := &Line{w: &b, width: width}
		l.Show("%d of %d entries", 1, 2)
		l.Show("too soon after the last one")
		l.Println("done")
		l.Clear()
		if b.String() != want {
			t.Errorf("%d columns: %q, want %q", width, &b, want)
		}
	}
}
