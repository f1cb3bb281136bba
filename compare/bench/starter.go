package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// starter runs the command of one attempt: alone, or between the start and the
// end of its server.
type starter struct {
	host         Host
	dir          string // where the commands run
	words        []string
	server       []string
	env          []string
	mark         string // the beginning of an entry of env, which all that was started inherits
	ready        string
	readyTimeout time.Duration
	timeout      time.Duration
	ending       func() // called when the command is about to be ended
	folder       string
	warnings     []string
	leftBehind   bool          // the command ended before all that it had started
	cpu          time.Duration // used by what was started, as far as it has ended
}

// run starts the command, waits for it and returns its exit code. The error is
// nil only if everything ended as it should.
func (s *starter) run(ctx context.Context) (code int, err error) {
	if s.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("%w of %s passed", errTimeout, s.timeout))
		defer cancel()
	}
	// What has left the process group of its parent, as MPI's daemons do, is
	// found by its mark.
	defer func() {
		if endMarked(s.mark, s.host.Patience) > 0 {
			s.leftBehind = true
		}
	}()
	if len(s.server) == 0 {
		return s.command(ctx)
	}
	if answers(ctx, s.ready) {
		return -1, fmt.Errorf("something answers at %s before the server is started: end it, or use another port", s.ready)
	}
	server, err := s.start(s.server, serverStdoutName, serverStderrName)
	if err != nil {
		return -1, err
	}
	defer func() {
		server.stop(s.host.Patience)
		s.cpu += server.cpu()
	}()
	if err := s.untilReady(ctx, server); err != nil {
		return -1, err
	}
	code, err = s.command(ctx)
	select {
	case <-server.done:
		if err == nil {
			err = fmt.Errorf("the server ended before it was asked to%s", s.lastWords(serverStderrName, serverStdoutName))
		}
	default:
	}
	return code, err
}

// command runs the measured command to its end.
func (s *starter) command(ctx context.Context) (code int, err error) {
	p, err := s.start(s.words, stdoutName, stderrName)
	if err != nil {
		return -1, err
	}
	left, err := p.wait(ctx, s.host.Patience, s.ending)
	s.cpu += p.cpu()
	s.leftBehind = s.leftBehind || left
	if ctx.Err() != nil && err != nil {
		return -1, err
	}
	if err != nil {
		err = fmt.Errorf("the command %s%s", describeExit(err), s.lastWords(stderrName, stdoutName))
	}
	return p.exitCode(), err
}

// start starts words with their output in two files of the attempt's folder.
func (s *starter) start(words []string, stdoutFile, stderrFile string) (*process, error) {
	program, err := s.host.program(words[0], s.dir)
	if err != nil {
		return nil, err
	}
	stdout, err := os.Create(filepath.Join(s.folder, stdoutFile))
	if err != nil {
		return nil, err
	}
	defer stdout.Close() // the child has its own
	stderr, err := os.Create(filepath.Join(s.folder, stderrFile))
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	p, err := startProcess(append([]string{program}, words[1:]...), s.env, s.dir, stdout, stderr)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", words[0], err)
	}
	return p, nil
}

// lastWords are what a failing command said last, as an addition to a message.
func (s *starter) lastWords(files ...string) string {
	for _, name := range files {
		if line := lastLine(filepath.Join(s.folder, name)); line != "" {
			return fmt.Sprintf("; the last it said was %q", line)
		}
	}
	return " and said nothing"
}

// untilReady waits for the server to answer.
func (s *starter) untilReady(ctx context.Context, server *process) error {
	if s.readyTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.readyTimeout, fmt.Errorf("the server did not answer at %s within %s", s.ready, s.readyTimeout))
		defer cancel()
	}
	for {
		if answers(ctx, s.ready) {
			return nil
		}
		select {
		case <-ctx.Done():
			s.ending()
			return context.Cause(ctx)
		case <-server.done:
			return fmt.Errorf("the server ended before it was ready%s", s.lastWords(serverStderrName, serverStdoutName))
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
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode/100 == 2
}

// lastLine is the last line of a file that is not blank, cut to a readable length;
// "" if there is none.
func lastLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	const reach = 4 << 10
	if info, err := f.Stat(); err == nil && info.Size() > reach {
		if _, err := f.Seek(-reach, io.SeekEnd); err != nil {
			return ""
		}
	}
	text, err := io.ReadAll(io.LimitReader(f, reach))
	if err != nil {
		return ""
	}
	lines := strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' || r == '\r' })
	for i := len(lines) - 1; i >= 0; i-- {
		if line := strings.TrimSpace(lines[i]); line != "" {
			if len(line) > 200 {
				line = strings.ToValidUTF8(line[:200], "") + "…"
			}
			return line
		}
	}
	return ""
}
