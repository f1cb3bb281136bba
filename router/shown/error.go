package shown

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
)

// Error is what an error says in one line, without the system call that failed on a file.
func Error(err error) string {
	text := err.Error()
	var path *fs.PathError
	if errors.As(err, &path) {
		text = strings.ReplaceAll(text, path.Error(), path.Path+": "+path.Err.Error())
	}
	lines := slices.Compact(strings.Split(text, "\n")) // several errors: closing a file repeats the error of writing it
	return Text(strings.Join(lines, "; "))             // names of files may be anything
}
