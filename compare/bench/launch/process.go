package launch

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Grace is the shutdown grace: how long a command is given to end after each signal.
type Grace struct {
	Interrupt time.Duration   // after SIGINT, before SIGTERM
	Terminate time.Duration   // after SIGTERM, before SIGKILL
	Cut       <-chan struct{} // closed to send SIGKILL without more waiting; may be nil
}

// DefaultGrace suits engines that must release GPUs on several ranks.
var DefaultGrace = Grace{Interrupt: 16 * time.Second, Terminate: 4 * time.Second}

// ofLeftovers is the grace of what outlives a command that has ended.
func (g Grace) ofLeftovers() Grace {
	g.Interrupt, g.Terminate = min(g.Interrupt, settling), min(g.Terminate, settling)
	return g
}

// signal signals a process, or a group by its negative number. For one that has just ended
// it fails, and nothing is left to do.
func signal(pid int, s syscall.Signal) { _ = syscall.Kill(pid, s) }

func groupRuns(group int) bool { return syscall.Kill(-group, 0) == nil }

const (
	// settling is how long what outlives its command has to end by itself, as the workers of
	// a healthy engine do, and then to end on SIGTERM.
	settling = 3 * time.Second
	// writing is how long a server has to write what it records before it is asked to end.
	writing = 10 * time.Second
	// afterKill is the wait after SIGKILL: for the system, not for the process.
	afterKill = 5 * time.Second
)

// wait waits until it is over, and reports whether it is when the time has passed.
func (g Grace) wait(limit time.Duration, over func() bool) bool {
	passed := time.After(limit)
	for pause := 5 * time.Millisecond; !over(); pause = min(2*pause, 100*time.Millisecond) {
		select {
		case <-passed:
			return over()
		case <-g.Cut:
			return over()
		case <-time.After(pause):
		}
	}
	return true
}

// end ends the processes that a search finds.
func (g Grace) end(find func() []int) {
	signalAll(find(), syscall.SIGTERM)
	if g.wait(g.Terminate, func() bool { return len(find()) == 0 }) {
		return
	}
	Grace{}.wait(afterKill, func() bool {
		left := find() // again each time: a process may have started another
		signalAll(left, syscall.SIGKILL)
		return len(left) == 0
	})
}

func signalAll(pids []int, s syscall.Signal) {
	for _, pid := range pids {
		signal(pid, s)
	}
}

// family is what a job, or a campaign that was killed, has started.
type family struct {
	marker  Marker         // of its processes
	groups  []Group        // as they were recorded
	leaders []int          // the processes that this one has started
	before  map[int]string // the children of this process before the job, by their start times; nil for no job
	seen    map[int]string // its processes so far, by their start times
}

// End ends what a campaign whose bench process was killed has left, by its marker and the
// groups that it recorded, and returns how many processes that was. It finds none on
// systems without /proc.
func End(m Marker, groups []Group, grace Grace) int {
	f := family{marker: m, groups: groups}
	// one that starts another program is unknown for a moment
	grace.wait(10*time.Millisecond, func() bool { return len(f.find()) > 0 })
	grace.end(f.find)
	return len(f.seen)
}

// process is a started command with a process group of its own, so that it can
// be ended together with everything it started, and is not hit by a Ctrl-C that
// is meant for us.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the command itself has ended
	err  error         // of Wait; read after done
}

// Group is a process group by what tells it from a later one of the same number.
type Group struct {
	ID      int    `json:"id"`
	Session string `json:"session"`
	Started int64  `json:"started"` // its first process, in clock ticks since the system started
	Boot    string `json:"boot"`    // ID of that start of the system
}

// startProcess starts words with its output going straight to the two files:
// nothing of it passes through our memory.
func startProcess(words, env []string, dir string, stdout, stderr *os.File) (*process, error) {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env, cmd.Dir = env, dir
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// running reports whether the command or a process of its group does.
func (p *process) running() bool {
	select {
	case <-p.done:
		return len(inGroup(p.cmd.Process.Pid)) > 0
	default:
		return true
	}
}
