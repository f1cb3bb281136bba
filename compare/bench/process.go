package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// Patience is how long a command is given to end after each way of asking.
type Patience struct {
	Interrupt time.Duration // after SIGINT, before SIGTERM
	Terminate time.Duration // after SIGTERM, before SIGKILL
}

// urgency is a way of asking processes to end.
type urgency int

const (
	interrupt urgency = iota
	terminate
	kill
)

// afterKill is the wait after SIGKILL: for the system, not for the process.
const afterKill = 5 * time.Second

// end asks more and more urgently, with waits between, until all are gone.
func (p Patience) end(ask func(urgency), gone func() bool) {
	for how, wait := range []time.Duration{interrupt: p.Interrupt, terminate: p.Terminate, kill: afterKill} {
		ask(urgency(how))
		for until := time.Now().Add(wait); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
			if gone() {
				return
			}
		}
	}
}

// DefaultPatience suits engines that must give back GPUs on several ranks.
var DefaultPatience = Patience{Interrupt: 15 * time.Second, Terminate: 10 * time.Second}

// process is a started command with a process group of its own, so that it can
// be ended together with everything it started, and is not hit by a Ctrl-C that
// is meant for us.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the command itself has ended
	err  error         // of Wait; read after done
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
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// errTimeout ends a launch that ran past its time limit.
var errTimeout = errors.New("time limit")

// wait until the command ends or ctx does; in the second case the whole group
// is ended, after a word through ending, and the cause of ctx returned.
// Processes that the command left behind are ended, too, and reported: they
// would disturb the next launch.
func (p *process) wait(ctx context.Context, patience Patience, ending func()) (left bool, err error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		ending()
		p.stop(patience)
		return false, context.Cause(ctx)
	}
	if left = groupAlive(p.cmd.Process.Pid); left {
		p.stop(patience)
	}
	return left, p.err
}

// stop ends the group.
func (p *process) stop(patience Patience) {
	group := p.cmd.Process.Pid
	patience.end(func(how urgency) { askGroup(group, how) }, func() bool {
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

// describeExit says in words how a command failed.
func describeExit(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() >= 0 {
		return fmt.Sprintf("ended with exit code %d", exit.ExitCode())
	}
	return "ended with " + err.Error()
}
