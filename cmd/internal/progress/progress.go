// Package progress shows the progress of a verb as one line at the bottom of a
// terminal. On anything but a terminal it shows nothing.
package progress

import (
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"github.com/moebalance/moebalance/router/quantity"
	"github.com/moebalance/moebalance/router/shown"
)

// Line is a line that is drawn over as work proceeds. It may be used by several
// goroutines.
type Line struct {
	mu    sync.Mutex
	w     io.Writer
	width func() int // of the terminal in columns; nil draws nothing
	now   func() time.Time
	drawn time.Time // when the line was drawn last; zero: it is not there
}

// pause keeps a fast loop from flooding the terminal.
const pause = 100 * time.Millisecond

// New is a line on w. It draws nothing unless w is a terminal that can.
func New(w io.Writer) *Line {
	l := &Line{w: w, now: time.Now}
	if f, ok := w.(*os.File); ok && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd())) {
		l.width = func() int {
			width, _, err := term.GetSize(int(f.Fd()))
			if err != nil {
				return 80
			}
			return width
		}
	}
	return l
}

// Show draws the text in place of the last one, unless that is very recent.
func (l *Line) Show(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if l.width == nil || now.Sub(l.drawn) < pause {
		return
	}
	text := []rune(shown.Text(fmt.Sprintf(format, args...)))
	fmt.Fprintf(l.w, "\r\x1b[K%s", string(text[:min(len(text), max(0, l.width()-1))]))
	l.drawn = now
}

// Clear takes the line away.
func (l *Line) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.drawn.IsZero() {
		io.WriteString(l.w, "\r\x1b[K")
		l.drawn = time.Time{}
	}
}

// Println takes the line away and writes text that stays.
func (l *Line) Println(text string) {
	l.Clear()
	fmt.Fprintln(l.w, shown.Text(text))
}

// Reading shows on a terminal which part of the files has been read; done takes
// the line away.
func Reading(stderr io.Writer, paths []string) (read func(bytes int64), done func()) {
	var total int64
	var sum atomic.Int64
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			total += info.Size()
		}
	}
	line, size := New(stderr), quantity.Bytes(float64(total))
	read = func(bytes int64) {
		share := float64(sum.Add(bytes)) / float64(max(1, total))
		line.Show("reading: %.0f %% of %s", math.Floor(100*share), size)
	}
	return read, line.Clear
}
