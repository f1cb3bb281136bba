// Package progress shows the progress of a verb as one line at the bottom of a
// terminal. On anything but a terminal it shows nothing.
package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// Line is a line that is drawn over as work proceeds. It may be used by several
// goroutines.
type Line struct {
	mu    sync.Mutex
	w     io.Writer
	width func() int // of the terminal in columns; nil draws nothing
	drawn time.Time  // when the line was drawn last; zero: it is not there
}

// pause keeps a fast loop from flooding the terminal.
const pause = 100 * time.Millisecond

// New is a line on w. It draws nothing unless w is a terminal that can, and not
// where quiet is set.
func New(w io.Writer, quiet bool) *Line {
	l := &Line{w: w}
	if f, ok := w.(*os.File); ok && !quiet && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd())) {
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
	if l.width == nil || time.Since(l.drawn) < pause {
		return
	}
	text := []rune(fmt.Sprintf(format, args...))
	fmt.Fprintf(l.w, "\r\x1b[K%s", string(text[:min(len(text), max(0, l.width()-1))]))
	l.drawn = time.Now()
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
	fmt.Fprintln(l.w, text)
}
