//go:build unix

package bench

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

var signals = [...]syscall.Signal{interrupt: syscall.SIGINT, terminate: syscall.SIGTERM, kill: syscall.SIGKILL}

// askGroup signals a group. For one that has just ended that fails, which is
// what was wanted.
func askGroup(group int, how urgency) { _ = syscall.Kill(-group, signals[how]) }

// groupAlive reports whether a process of the group still runs. Dead ones that
// nobody has collected, as in a container without an init, do not count.
func groupAlive(group int) bool {
	if syscall.Kill(-group, 0) != nil {
		return false
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		// pid (name) state ppid pgrp …; the name may hold anything, so cut after its ")".
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) > 2 && fields[2] == strconv.Itoa(group) && fields[0] != "Z" && fields[0] != "X" {
			return true
		}
	}
	return len(stats) == 0 // without /proc the signal's answer stands
}

// endMarked ends every process whose environment carries the variable, as those
// of a campaign do whose bench process was killed, and returns how many there
// were. It finds none on systems without /proc.
func endMarked(variable string, patience Patience) int {
	count := len(marked(variable))
	if count == 0 {
		return 0
	}
	patience.end(func(how urgency) {
		for _, pid := range marked(variable) {
			_ = syscall.Kill(pid, signals[how])
		}
	}, func() bool { return len(marked(variable)) == 0 })
	return count
}

// marked lists the processes whose environment has an entry that begins with
// the variable. A dead process has no environment any more.
func marked(variable string) []int {
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	var pids []int
	for _, path := range paths {
		env, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(append([]byte{0}, env...), append([]byte{0}, variable...)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

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

// isLocked reports whether the error of lockFile means that another has it.
func isLocked(err error) bool { return err == syscall.EWOULDBLOCK }
