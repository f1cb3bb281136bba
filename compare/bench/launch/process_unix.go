//go:build unix

package launch

import (
	"os/exec"
	"syscall"
)

func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

var signals = [...]syscall.Signal{interrupt: syscall.SIGINT, terminate: syscall.SIGTERM, kill: syscall.SIGKILL}

// signal signals a process, or a group by its negative number. For one that has just ended
// it fails, and nothing is left to do.
func signal(pid int, s stage) { _ = syscall.Kill(pid, signals[s]) }

func groupRuns(group int) bool { return syscall.Kill(-group, 0) == nil }
