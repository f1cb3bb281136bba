package main

import (
	"io"
	"os"

	"golang.org/x/term"
)

// onTerminal reports whether a stream is a terminal that a progress bar can be
// drawn on.
func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}
