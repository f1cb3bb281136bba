//go:build unix

package launch

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

// signalGroup signals a process group. For a group that has just ended it fails,
// and nothing is left to do.
func signalGroup(group int, s stage) { _ = syscall.Kill(-group, signals[s]) }

// groupAlive reports whether a process of the group still runs. Dead ones that
// nobody has collected, as in a container without an init, do not count.
func groupAlive(group int) bool {
	if syscall.Kill(-group, 0) != nil {
		return false
	}
	stats := ofProcesses("stat")
	for _, path := range stats {
		if fields := status(pidOf(path)); runs(fields) && fields[groupField] == strconv.Itoa(group) {
			return true
		}
	}
	return len(stats) == 0 // without /proc the signal's answer stands
}

// group is the process group of a started process.
func (p *process) group() Group {
	g := Group{ID: p.cmd.Process.Pid, Boot: bootID()}
	if fields := status(g.ID); len(fields) > startField {
		g.Session, g.Started = fields[sessionField], ticks(fields)
	}
	return g
}

func bootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
}

func ticks(status []string) int64 {
	n, _ := strconv.ParseInt(status[startField], 10, 64)
	return n
}

// members counts the running processes of a group; 0 where the number now is another
// group's: of another start of the system, or with a process of another session or one
// that started before the group did, or led by a later process.
func (g Group) members() (n int) {
	if g.Started == 0 || g.Boot != bootID() {
		return 0
	}
	for _, path := range ofProcesses("stat") {
		fields := status(pidOf(path))
		if !runs(fields) || fields[groupField] != strconv.Itoa(g.ID) {
			continue
		}
		if fields[sessionField] != g.Session || ticks(fields) < g.Started || pidOf(path) == g.ID && ticks(fields) != g.Started {
			return 0
		}
		n++
	}
	return n
}

// EndGroups ends what is left of process groups that an earlier run recorded, and
// returns how many processes that was.
func EndGroups(groups []Group, grace Grace) (ended int) {
	for _, g := range groups {
		if n := g.members(); n > 0 {
			ended += n
			grace.end(func(s stage) {
				if g.members() > 0 {
					signalGroup(g.ID, s)
				}
			}, func() bool { return g.members() == 0 })
		}
	}
	return ended
}

// Indexes into the fields of status.
const (
	stateField   = 0
	groupField   = 2
	sessionField = 3
	startField   = 19
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
	return len(status) > startField && status[stateField] != "Z" && status[stateField] != "X"
}

// ofProcesses are the paths of a file that every process has. A pattern that ends with it
// would read the folder of each.
func ofProcesses(file string) []string {
	paths, _ := filepath.Glob("/proc/[0-9]*")
	for i, folder := range paths {
		paths[i] = filepath.Join(folder, file)
	}
	return paths
}

// pidOf is the number of a process whose file in /proc is named; 0 for none.
func pidOf(path string) int {
	pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
	return pid
}

// End ends every process that carries the marker, as those of a campaign do whose
// bench process was killed, and returns how many there were. It finds none on systems
// without /proc.
func (m Marker) End(grace Grace) int {
	started := map[int]string{} // by process: its start time, which tells it from a later one of the same number
	running := func(pid int) bool {
		fields := status(pid)
		return runs(fields) && fields[startField] == started[pid]
	}
	scan := func() {
		for _, pid := range m.processes() {
			if fields := status(pid); runs(fields) {
				started[pid] = fields[startField]
			}
		}
	}
	if scan(); len(started) == 0 {
		time.Sleep(10 * time.Millisecond)
		if scan(); len(started) == 0 {
			return 0
		}
	}
	grace.end(func(s stage) {
		scan()
		for pid := range started {
			if running(pid) {
				_ = syscall.Kill(pid, signals[s])
			}
		}
	}, func() bool {
		scan()
		for pid := range started {
			if running(pid) {
				return false
			}
		}
		return true
	})
	return len(started)
}

// campaignOf is the ID of the campaign that started a process; empty if none did.
func campaignOf(pid int) string {
	env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	_, rest, found := strings.Cut("\x00"+string(env), "\x00"+markerName+"=")
	if id, _, ok := strings.Cut(rest, "/"); found && ok {
		return id
	}
	return ""
}

// processes lists the processes whose environment carries the marker. A dead process
// has no environment any more, and one that is starting another program has none for
// a moment.
func (m Marker) processes() []int {
	var pids []int
	for _, path := range ofProcesses("environ") {
		env, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(append([]byte{0}, env...), append([]byte{0}, m...)) {
			continue
		}
		if pid := pidOf(path); pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}
