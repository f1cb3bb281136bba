package output

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Screen is the terminal that a person reads on, which wraps prose itself. The zero value is a pipe or a
// file: tables of any width, without color.
type Screen struct {
	Width int // columns; 0 is any number
	Color bool
}

// ScreenOf is the screen that w writes to, none unless it is a terminal. NO_COLOR and
// TERM=dumb take the color away.
func ScreenOf(w io.Writer, env func(string) string) Screen {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return Screen{}
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		width = 80
	}
	return Screen{width, env("NO_COLOR") == "" && env("TERM") != "dumb"}
}

// bold sets a text off where there is color; nothing is said by it alone.
func (s Screen) bold(text string) string { return s.escape("1", text) }

// escape sets each line of a text off, so that lines can be put beside others.
func (s Screen) escape(code, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + strings.ReplaceAll(text, "\n", "\x1b[0m\n\x1b["+code+"m") + "\x1b[0m"
}
