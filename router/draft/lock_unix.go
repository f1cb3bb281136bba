//go:build unix

package draft

import (
	"errors"
	"os"
	"syscall"
)

// lock takes the file's advisory lock without waiting. held says that somebody
// else has it. File systems without locks report an error.
func lock(f *os.File) (held bool, err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}
