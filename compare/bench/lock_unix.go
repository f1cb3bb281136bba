//go:build unix

package bench

import (
	"os"
	"syscall"
)

// lockFile takes the campaign's writer lock, which the system gives back when
// the process ends, however it ends.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// isLocked reports whether the error of lockFile means that another process has it.
func isLocked(err error) bool { return err == syscall.EWOULDBLOCK }
