package shown

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
)

// Error is what an error says in one line, without the system call that failed on a file or a server.
func Error(err error) string {
	text := err.Error()
	var path *fs.PathError
	if errors.As(err, &path) {
		text = strings.ReplaceAll(text, path.Error(), path.Path+": "+path.Err.Error())
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		cause := dial.Err
		if call := (*os.SyscallError)(nil); errors.As(cause, &call) {
			cause = call.Err
		}
		text = strings.ReplaceAll(text, dial.Error(),
			fmt.Sprintf("no server answers (%v); start it, or check host and port", cause))
	}
	lines := slices.Compact(strings.Split(text, "\n")) // several errors: closing a file repeats the error of writing it
	return Text(strings.Join(lines, "; "))             // names of files may be anything
}
