package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/moebalance/moebalance/router/shown"
)

// The log files in a job's folder.
const (
	Stdout       = "stdout.log"
	Stderr       = "stderr.log"
	serverStdout = "server-stdout.log"
	serverStderr = "server-stderr.log"
)

// Logs lists them all.
var Logs = []string{Stdout, Stderr, serverStdout, serverStderr}

// Job is one start of a benchmark command, or of several one after another: alone, or
// between the start and the end of their server.
type Job struct {
	// Drive says what is run, and how often: run runs a command to its end.
	Drive  func(ctx context.Context, run func(context.Context, Run) error) error
	Server []string // started first and ended last; nil for none
	Dir    string   // where all run; empty is the current folder
	Env    []string // of the measured command
	// ServerEnv alone has the switch of an arm: a client that knew it could decide the result.
	ServerEnv []string
	Marker    Marker // in both, so that everything started inherits it
	Folder    string // for the log files of the server
	Own       string // the program to start for OwnName where none is on the path

	Ready   string        // URL that answers 2xx once the server is ready
	Timeout time.Duration // of the whole job; 0 is none
	Grace   Grace
	Ending  func()      // called when the command is about to be ended
	Started func(Group) // called with the group of every process started
	Written func() bool // whether the server has written what it records, for which it is given a moment; may be nil
}

// Run is one measured command.
type Run struct {
	Words  []string
	Folder string // for its log files
}

// Outcome is how a job ended.
type Outcome struct {
	ExitCode   int  // of the command; −1 when it was ended by a signal or never ran
	LeftBehind bool // the command ended, and something that it had started did not
}

// Run starts the job and waits for it. The error is nil only if everything ended as
// it should. What was started is gone when Run returns.
func (j Job) Run(ctx context.Context) (Outcome, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(j.Timeout, math.MaxInt64),
		fmt.Errorf("time limit of %s passed", j.Timeout))
	defer cancel()
	r := running{Job: j, outcome: Outcome{ExitCode: -1}, family: family{marker: j.Marker, before: children()}}
	err := r.run(ctx)
	r.end()
	return r.outcome, err
}

// running is a job and what has come of it so far.
type running struct {
	Job
	outcome Outcome
	started []*process
	family  family
}

// end ends everything that is left of the job: what runs is asked to end, in its groups,
// and everything else is left to it at first, as the daemons of MPI and nsys are.
func (j *running) end() {
	asked := slices.DeleteFunc(slices.Clone(j.started), func(p *process) bool { return !p.running() })
	for _, p := range asked {
		signal(-p.cmd.Process.Pid, syscall.SIGINT)
	}
	grace, began := j.Grace, time.Now()
	if len(asked) == 0 {
		grace = grace.ofLeftovers()
	}
	if grace.wait(grace.Interrupt, func() bool { return !slices.ContainsFunc(asked, (*process).running) }) {
		if grace.wait(min(settling, grace.Interrupt-time.Since(began)),
			func() bool { return len(j.family.find()) == 0 }) {
			return
		}
		j.outcome.LeftBehind = true
	}
	grace.end(j.family.find)
}

// endGroup ends what a command that has ended left in its group: it would disturb the next.
func (j *running) endGroup(p *process) {
	if grace := j.Grace.ofLeftovers(); !grace.wait(grace.Interrupt, func() bool { return !p.running() }) {
		j.outcome.LeftBehind = true
		grace.end(func() []int { return inGroup(p.cmd.Process.Pid) })
	}
}

func (j *running) run(ctx context.Context) error {
	if len(j.Server) == 0 {
		return j.Drive(ctx, j.command)
	}
	if answers(ctx, j.Ready) {
		return fmt.Errorf("something answers at %s before the server is started: end it, or use another port",
			shown.Masked(j.Ready))
	}
	server, err := j.start(j.Server, j.ServerEnv, j.Folder, serverStdout, serverStderr)
	if err != nil {
		return err
	}
	if err := j.untilReady(ctx, server); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() { // a moment after the server: a client that sees its end says more
		<-server.done
		time.Sleep(settling)
		cancel(errServerEnded)
	}()
	if err = j.Drive(ctx, j.command); err == nil && j.Written != nil {
		j.Grace.wait(writing, func() bool { return ctx.Err() != nil || j.Written() })
	}
	moment := time.Duration(0)
	if err != nil { // a client that fails because its server ends may end first
		moment = 200 * time.Millisecond
	}
	select {
	case <-server.done:
		ended := fmt.Errorf("%w%s", errServerEnded, lastWords(j.Folder, serverStderr, serverStdout))
		if err != nil && !errors.Is(err, errServerEnded) {
			ended = fmt.Errorf("%w; %v", ended, err)
		}
		return ended
	case <-time.After(moment):
		return err
	}
}

var errServerEnded = errors.New("the server ended before the benchmark did")

// command runs a measured command to its end.
func (j *running) command(ctx context.Context, r Run) error {
	if n := len(j.started); n > 1 { // the last client ended with its group
		j.started = j.started[:n-1]
	}
	p, err := j.start(r.Words, j.Env, r.Folder, Stdout, Stderr)
	if err != nil {
		return err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		j.Ending()
		return context.Cause(ctx)
	}
	j.endGroup(p)
	j.outcome.ExitCode = p.cmd.ProcessState.ExitCode() // −1 for a signal
	if p.err != nil {
		return fmt.Errorf("the command ended with %w%s", p.err, lastWords(r.Folder, Stderr, Stdout))
	}
	return nil
}

// start starts words with their output in two files of a folder, new ones that their owner alone may read: raw output
// may hold secrets.
func (j *running) start(words, env []string, folder, stdoutFile, stderrFile string) (*process, error) {
	program, err := FindProgram(words[0], j.Dir, j.Own)
	if err != nil {
		return nil, err
	}
	var logs [2]*os.File
	for i, name := range []string{stdoutFile, stderrFile} {
		logs[i], err = os.OpenFile(filepath.Join(folder, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		defer logs[i].Close() // the child has its own
	}
	p, err := startProcess(append([]string{program}, words[1:]...), env, j.Dir, logs[0], logs[1])
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", words[0], err)
	}
	j.started, j.family.leaders = append(j.started, p), append(j.family.leaders, p.cmd.Process.Pid)
	j.Started(p.group())
	return p, nil
}

// lastWords is what a failing command printed last, to add to a message.
func lastWords(folder string, files ...string) string {
	for _, name := range files {
		if line := lastLine(filepath.Join(folder, name)); line != "" {
			return fmt.Sprintf("; its last line was %q", shown.Masked(line))
		}
	}
	return " and printed nothing"
}

// readyWithin is how long a server may take to answer: large models load for minutes.
const readyWithin = 30 * time.Minute

// untilReady waits for the server to answer.
func (j Job) untilReady(ctx context.Context, server *process) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin,
		fmt.Errorf("the server did not answer at %s within %s", shown.Masked(j.Ready), readyWithin))
	defer cancel()
	for {
		if answers(ctx, j.Ready) {
			return nil
		}
		select {
		case <-ctx.Done():
			j.Ending()
			return context.Cause(ctx)
		case <-server.done:
			return fmt.Errorf("the server ended before it was ready%s", lastWords(j.Folder, serverStderr, serverStdout))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// answers reports whether the URL gives a 2xx answer within two seconds.
func answers(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err == nil {
		resp.Body.Close()
	}
	return err == nil && resp.StatusCode/100 == 2
}

// lastLine is the last line of a file that is not blank, cut to a readable length;
// "" if there is none.
func lastLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	const reach, most = 4 << 10, 200
	_, _ = f.Seek(-reach, io.SeekEnd) // a shorter file is read from its start
	text, _ := io.ReadAll(io.LimitReader(f, reach))
	line := strings.TrimSpace(string(text))
	line = strings.TrimSpace(line[strings.LastIndexAny(line, "\n\r")+1:])
	if len(line) > most {
		return strings.ToValidUTF8(line[:most], "") + "…"
	}
	return line
}

// OwnName is this program's name: a command with that name can always be started.
const OwnName = "moebalance"

// FindProgram is the path of the program that a command of the folder names; own
// where that is OwnName and no such program is on the path.
func FindProgram(name, folder, own string) (string, error) {
	at := name
	if strings.ContainsRune(name, filepath.Separator) && !filepath.IsAbs(name) {
		at, _ = filepath.Abs(filepath.Join(folder, name)) // without a current folder, nothing is found
	}
	path, err := exec.LookPath(at)
	switch {
	case err == nil:
		return filepath.Abs(path)
	case name == OwnName && own != "":
		return own, nil
	}
	mend := "check the spelling or give its full path"
	if strings.Contains(name, " ") {
		mend = "give the words of the command without quotes around them all"
	}
	return "", fmt.Errorf("command not found: %q is neither a program on the path nor an executable file: %s", name, mend)
}
