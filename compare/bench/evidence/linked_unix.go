//go:build unix

package evidence

import (
	"os"
	"syscall"
)

// linked reports whether a file has another name.
func linked(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink > 1
}
