package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Grace is the shutdown grace: how long a command is given to end after each signal.
type Grace struct {
	Interrupt time.Duration // after SIGINT, before SIGTERM
	Terminate time.Duration // after SIGTERM, before SIGKILL
}

// DefaultGrace suits engines that must release GPUs on several ranks.
var DefaultGrace = Grace{Interrupt: 15 * time.Second, Terminate: 10 * time.Second}

// stage is the signal that processes are sent next.
type stage int

const (
	interrupt stage = iota
	terminate
	kill
)

// afterKill is the wait after SIGKILL: for the system, not for the process.
const afterKill = 5 * time.Second

// end sends one signal after the other, with waits between, until all are gone.
func (g Grace) end(signal func(stage), gone func() bool) {
	for s, wait := range []time.Duration{interrupt: g.Interrupt, terminate: g.Terminate, kill: afterKill} {
		signal(stage(s))
		for until := time.Now().Add(wait); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
			if gone() {
				return
			}
		}
	}
}

// process is a started command with a process group of its own, so that it can
// be ended together with everything it started, and is not hit by a Ctrl-C that
// is meant for us.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the command itself has ended
	err  error         // of Wait; read after done

	environ chan []string // gives its environment once, after done; see followEnviron
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
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, done: make(chan struct{}), environ: make(chan []string, 1)}
	go p.followEnviron()
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// followEnviron reads the environment that the process ends up with: a script may set
// variables and then become the benchmark. It looks at intervals that grow with the time
// passed, to one second, and keeps what the last two looks have shown; nothing where they
// differ or the system shows none. So a program that runs much longer than the scripts
// before it is seen whatever its speed.
func (p *process) followEnviron() {
	var last []byte
	settled := false
	path := fmt.Sprintf("/proc/%d/environ", p.cmd.Process.Pid)
	for wait := 5 * time.Millisecond; ; wait = min(wait+wait/8, time.Second) {
		select {
		case <-p.done:
			var entries []string
			if settled {
				entries = strings.Split(strings.TrimRight(string(last), "\x00"), "\x00")
			}
			p.environ <- entries
			return
		case <-time.After(wait):
		}
		if text, err := os.ReadFile(path); err == nil && len(text) > 0 {
			last, settled = text, bytes.Equal(text, last)
		}
	}
}

// lastEnviron is what followEnviron has kept of a process that has ended; nil of one
// that could not be ended.
func (p *process) lastEnviron() []string {
	select {
	case entries := <-p.environ:
		return entries
	case <-time.After(time.Second):
		return nil
	}
}

// errTimeout ends a launch that ran past its time limit.
var errTimeout = errors.New("time limit")

// wait until the command ends or ctx does; in the second case ending is called, the
// whole group ended, and the cause of ctx returned. Processes that the command left
// behind are ended, too, and reported: they would disturb the next launch.
func (p *process) wait(ctx context.Context, grace Grace, ending func()) (left bool, err error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		ending()
		p.stop(grace)
		return false, context.Cause(ctx)
	}
	if left = groupAlive(p.cmd.Process.Pid); left {
		p.stop(grace)
	}
	return left, p.err
}

// stop ends the group.
func (p *process) stop(grace Grace) {
	group := p.cmd.Process.Pid
	grace.end(func(s stage) { signalGroup(group, s) }, func() bool {
		select {
		case <-p.done:
			return !groupAlive(group)
		default:
			return false
		}
	})
}

// exitCode is how the command ended: its code, or −1 for a signal.
func (p *process) exitCode() int {
	if s := p.cmd.ProcessState; s != nil {
		return s.ExitCode()
	}
	return -1
}

// cpu is the processor time of the command and of what it waited for; 0 while
// it runs.
func (p *process) cpu() time.Duration {
	select {
	case <-p.done:
		return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
	default:
		return 0
	}
}

// describeExit describes how a command failed.
func describeExit(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() >= 0 {
		return fmt.Sprintf("ended with exit code %d", exit.ExitCode())
	}
	return "ended with " + err.Error()
}
