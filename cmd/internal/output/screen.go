package output

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Width is the number of columns of the terminal that w writes to, where people read tables that are cut and
// verdicts in color. It is 0 for pipes, files and terminals that cannot (TERM=dumb).
func Width(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		return width
	}
	return 80
}
