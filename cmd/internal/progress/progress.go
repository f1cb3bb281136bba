// Package progress shows the progress of a verb as one line at the bottom of a terminal. On anything
// but a terminal it shows nothing.
package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/router/quantity"
	"github.com/moebalance/moebalance/router/shown"
)

// Line is a line that is drawn over as work proceeds. It may be used by several goroutines.
type Line struct {
	mu    sync.Mutex
	w     io.Writer
	width int       // of the terminal; 0 draws nothing
	drawn time.Time // when the line was drawn last; zero: it is not there
}

// New is a line on w. It draws nothing unless w is a terminal.
func New(w io.Writer) *Line { return &Line{w: w, width: output.Width(w)} }

// Show draws the text in place of the last one, unless that is so recent that a loop would flood the
// terminal.
func (l *Line) Show(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.width > 0 && time.Since(l.drawn) >= 100*time.Millisecond {
		fmt.Fprintf(l.w, "\r\x1b[K%.*s", l.width-1, shown.Text(fmt.Sprintf(format, args...)))
		l.drawn = time.Now()
	}
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

// Entries shows how many entries are done.
func (l *Line) Entries(done, total int) { l.Show("%d of %d entries", done, total) }

// Reading shows which part of the files has been read; done takes the line away.
func (l *Line) Reading(paths []string) (read func(bytes int64), done func()) {
	var total, sum int64
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			total += info.Size()
		}
	}
	return func(bytes int64) {
		l.Show("reading: %d %% of %s", 100*atomic.AddInt64(&sum, bytes)/max(1, total),
			quantity.Bytes(float64(total)))
	}, l.Clear
}
