//go:build unix

package bench

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
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
		if fields := status(pidOf(path)); runs(fields) && fields[groupField] == strconv.Itoa(group) {
			return true
		}
	}
	return len(stats) == 0 // without /proc the signal's answer stands
}

// Places among the fields of status.
const (
	stateField = 0
	groupField = 2
	beginField = 19
)

// status are the fields of a process's stat file from its state on; nil without
// such a process.
func status(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	// pid (name) state …; the name may hold anything, so cut after its ")".
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}

// runs reports whether a process of such a status is neither gone nor dead.
func runs(status []string) bool {
	return len(status) > beginField && status[stateField] != "Z" && status[stateField] != "X"
}

// pidOf is the number of a process whose file in /proc is named; 0 for none.
func pidOf(path string) int {
	pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
	return pid
}

// endMarked ends every process whose environment carries the variable, as those
// of a campaign do whose bench process was killed, and returns how many there
// were. It finds none on systems without /proc.
func endMarked(variable string, patience Patience) int {
	began := map[int]string{} // by process seen so far: when it began, which tells it from a later one of its number
	runsStill := func(pid int) bool {
		fields := status(pid)
		return runs(fields) && fields[beginField] == began[pid]
	}
	look := func() {
		for _, pid := range marked(variable) {
			if fields := status(pid); runs(fields) {
				began[pid] = fields[beginField]
			}
		}
	}
	if look(); len(began) == 0 {
		time.Sleep(10 * time.Millisecond)
		if look(); len(began) == 0 {
			return 0
		}
	}
	patience.end(func(how urgency) {
		look()
		for pid := range began {
			if runsStill(pid) {
				_ = syscall.Kill(pid, signals[how])
			}
		}
	}, func() bool {
		look()
		for pid := range began {
			if runsStill(pid) {
				return false
			}
		}
		return true
	})
	return len(began)
}

// marked lists the processes whose environment has an entry that begins with
// the variable. A dead process has no environment any more, and one that is
// starting another program has none for a moment.
func marked(variable string) []int {
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	var pids []int
	for _, path := range paths {
		env, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(append([]byte{0}, env...), append([]byte{0}, variable...)) {
			continue
		}
		if pid := pidOf(path); pid != os.Getpid() {
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
