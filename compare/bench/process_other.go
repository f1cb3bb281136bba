//go:build !unix

package bench

import (
	"os"
	"os/exec"
)

// Without process groups only the command itself can be ended.

func ownGroup(*exec.Cmd) {}

func askGroup(pid int, _ urgency) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}

func groupAlive(int) bool            { return false }
func endMarked(string, Patience) int { return 0 }
func marked(string) []int            { return nil }

// lockFile fails while another process has the file, for as long as it exists.
func lockFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
}

func isLocked(error) bool { return false }
