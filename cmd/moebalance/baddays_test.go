//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/moebalance/moebalance/testdata/require"
)

// programVariable makes the test binary the program itself, to be killed, starved and
// cut off.
const programVariable = "MOEBALANCE_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		main()
	}
	debug.SetGCPercent(400) // thousands of runs of the program, each with its garbage
	os.Exit(m.Run())
}

// program is the program as a process of its own.
func program(args ...string) *exec.Cmd {
	self := require.Value(os.Executable())
	c := exec.Command(self, args...)
	c.Env = append(os.Environ(), programVariable+"=1")
	return c
}

// badInputs reads IN in every way there is.
var badInputs = []string{
	"trace IN", "trace --counts IN LOOP", "trace --counts IN LOOP", "trace --model IN LOOP",
	"trace --summary out IN",
	"counts IN", "counts --placement IN COUNTS", "counts --model IN COUNTS", "place IN",
	"place --judge IN COUNTS", "place --trace IN COUNTS",
	"compare IN IN", "compare --campaign IN LOOP PERFECT", "compare --counts-normal IN LOOP PERFECT",
	"compare --trust-arms IN,IN IN", "report -o out IN",
	"models IN", "logits verify IN", "logits list IN", "logits plans --model IN --ep 2",
	"logits plans --model e8k2 --placement IN",
	"logits generate --model e8k2 --ep 2 --cache cache --plan recorded:IN", "bench --resume IN",
	"bench --model IN --campaign new -- true",
}

// badOutputs writes OUT in every way there is.
var badOutputs = []string{
	"trace LOOP -o OUT", "trace LOOP --summary OUT", "counts COUNTS -o OUT",
	"place COUNTS --write-trtllm OUT", "place COUNTS --write-sglang OUT", "place COUNTS --write-vllm OUT",
	"compare LOOP PERFECT -o OUT", "report LOOP -o OUT", "report LOOP --png OUT", "report LOOP --svg OUT",
	"models -o OUT", "hook -o OUT", "bench dataset --num-requests 9 --input-mean 2 --output-mean 1 -o OUT",
	"logits generate --model e8k2 --ep 2 --tokens 1 --cache OUT",
	"logits plans --model e8k2 --ep 2 -o OUT", "bench --campaign OUT -- true",
	"profile --dry-run --dir OUT -- true",
	"quickstart --dir OUT",
}

// arguments are the words of a line, whose words in capitals stand for files.
func arguments(line, file string) []string {
	args := strings.Fields(line)
	for i, w := range args {
		switch w {
		case "LOOP", "PERFECT":
			args[i] = absolute + map[string]string{"LOOP": "gptoss-ep4-loop/normal.sqlite",
				"PERFECT": "gptoss-ep4-loop/perfect.sqlite"}[w]
		case "COUNTS":
			args[i] = absolute + "gptoss-ep4-ranks/counts-normal"
		default:
			args[i] = strings.NewReplacer("OUT", file, "IN", file).Replace(w)
		}
	}
	return args
}

// absolute is the folder of fixtures, from every working folder.
var absolute = func() string {
	path, err := filepath.Abs(fixtures)
	if err != nil {
		panic(err)
	}
	return path + "/"
}()

// No verb waits for what never ends: it is one line and exit 1 or 2, in well under the
// time that a test has.
func TestPipesDevicesAndSockets(t *testing.T) {
	if testing.Short() {
		t.Skip("every verb with every kind of file")
	}
	t.Chdir(t.TempDir())
	socket, err := net.Listen("unix", "socket")
	if err != nil {
		t.Skip(err)
	}
	defer socket.Close()
	var all sync.WaitGroup
	check := func(line, file string) {
		all.Go(func() {
			ended := make(chan struct{})
			var stderr bytes.Buffer
			var code int
			args := arguments(line, file)
			go func() {
				code = run(t.Context(), args, strings.NewReader(""), io.Discard, &stderr)
				close(ended)
			}()
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Errorf("%q: still waits", args)
				return
			}
			if said := stderr.String(); code != exitFailed && code != exitUsage || strings.Count(said, "\n") != 1 {
				t.Errorf("%q: exit %d, %q; want exit 1 or 2 and one line", args, code, said)
			}
		})
	}
	pipe := func(n int) string {
		name := fmt.Sprintf("%d-pipe", n) // a new one, because who gives up on one lets others go
		require.NoError(t, syscall.Mkfifo(name, 0o600))
		return name
	}
	for n, line := range badInputs {
		folder := fmt.Sprintf("%d-folder", n)
		require.NoError(t, errors.Join(os.Mkdir(folder, 0o755), syscall.Mkfifo(filepath.Join(folder, "meta_info.json"), 0o600),
			syscall.Mkfifo(filepath.Join(folder, "a.sqlite"), 0o600)))
		for _, file := range []string{pipe(n), folder, "socket", "/dev/zero", os.DevNull} {
			if file != folder || !strings.HasPrefix(line, "logits ") { // a folder without entries is told, not refused
				check(line, file)
			}
		}
	}
	for n, line := range badOutputs {
		for _, file := range []string{pipe(1000 + n), "socket", "/dev/full"} {
			check(line, file)
		}
	}
	all.Wait()
}

// Files of any name are read and written, and an error about one is one line of UTF-8.
func TestOddPaths(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"a b", "new\nline.json", "-dash.json", "--help", "größe-日本.json", "not\xffutf8.json",
		"'\"$(x)`.json", strings.Repeat("x", 255)} {
		if err := os.WriteFile(name, []byte("[[1,2]]"), 0o644); err != nil {
			t.Logf("%q: %v", name, err) // not every file system has every name
			continue
		}
		if _, stderr, code := invoke(t.Context(), "counts", "-o", "o"+name[1:], "--", name); code != exitDone {
			t.Errorf("%q: exit %d, %s", name, code, stderr)
		}
		if _, stderr, code := invoke(t.Context(), "trace", "--", name, name); code == exitDone ||
			strings.Count(stderr, "\n") != 1 || !utf8.ValidString(stderr) {
			t.Errorf("trace %q: exit %d, %q", name, code, stderr)
		}
	}
}

// Where files cannot grow, each output is one line about the file that was asked for, the
// old output stays, and nothing is left beside it.
func TestDiskFull(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process for each output")
	}
	t.Chdir(t.TempDir())
	for _, line := range []string{"trace LOOP -o OUT", "trace LOOP --summary OUT", "report LOOP -o OUT",
		"place COUNTS --write-trtllm OUT"} {
		put(t, "out", "old")
		c := program()
		c.Path, c.Args = "/bin/sh", append([]string{"sh", "-c", `ulimit -f 0 && exec "$0" "$@"`, c.Path},
			forcing(arguments(line, "out"))...)
		text, err := c.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitFailed || bytes.Count(text, []byte("\n")) != 1 ||
			bytes.Contains(text, []byte(".moebalance-")) || bytes.Contains(text, []byte("export it again")) {
			t.Errorf("%s: %v, %s", line, err, text)
		}
		old, err := os.ReadFile("out")
		if left, _ := os.ReadDir("."); err != nil || string(old) != "old" || len(left) != 1 {
			t.Errorf("%s: %q, %v, left %v", line, old, err, left)
		}
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	c := program("models")
	c.Stdout = full
	var said bytes.Buffer
	c.Stderr = &said
	if err := c.Run(); c.ProcessState.ExitCode() != exitFailed ||
		said.String() != "moebalance models: /dev/stdout: no space left on device\n" {
		t.Errorf("%v, %q", err, &said)
	}
}

// What is secret in an environment, a command line and an address reaches no output. The
// campaign file keeps the command line, for --resume, and says so in help.
func TestSecretsReachNoOutput(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"HF_TOKEN", "VLLM_API_KEY", "NCCL_PASSWORD", "MOEBALANCE_SECRET",
		"AWS_SECRET_ACCESS_KEY", "PLAIN"} {
		t.Setenv(name, "PLANTED-in-"+name)
	}
	own := script(t, engine(100, 120))
	words := []string{own, "--api-key", "PLANTED-1", "--hf-token=PLANTED-2", "http://me:PLANTED-3@host/v1",
		"sh -c 'export TOKEN=PLANTED-4'", "Authorization: Bearer PLANTED-5", "-pPLANTED-15"}
	var all strings.Builder
	ask := func(args ...string) {
		stdout, stderr, _ := invoke(t.Context(), args...)
		all.WriteString(stdout + stderr)
	}
	ask(append(append([]string{"bench", "--pairs", "6", "--campaign", "refused", "--"}, words...),
		"--api-key=PLANTED-6-{arm}", "--hf-token", "PLANTED-7-{arm}")...)
	ask(append([]string{"bench", "--pairs", "6", "--campaign", "c", "--arm",
		"more=HF_TOKEN=PLANTED-8 --api-key PLANTED-9", "--format", "json", "-o", "bench.json", "--"}, words...)...)
	for _, format := range []string{"text", "json", "csv", "md"} {
		ask("bench", "--resume", "c", "--format", format)
	}
	ask("bench", "--campaign", filepath.Join(t.TempDir(), "raw"), "--", "sh", "-c",
		"echo 'refused: HF_TOKEN=PLANTED-13 at http://me:PLANTED-14@h' >&2; exit 3")
	ask(append([]string{"profile", "--dry-run", "--nsys-arg=--env-var=HF_TOKEN=PLANTED-16", "--"}, words...)...)
	ask("report", "c", "-o", "page.html")
	ask("report", "c", "--svg", "figures")
	ask("report", "bench.json", "-o", "other.html")
	ask("counts", "http://me:PLANTED-10@127.0.0.1:1/metrics")
	ask("counts", "http://me:PLANTED-11@127.0.0.1:port/metrics")
	ask("bench", "--campaign", "d", "--server", "sleep 60", "--ready", "http://me:PLANTED-12@127.0.0.1:1/",
		"--timeout", "1ms", "--client", "true")
	if !strings.Contains(all.String(), "(redacted)") || !strings.Contains(all.String(), "imbalance significant") {
		t.Errorf("nothing was tested: %s", &all)
	}
	err := filepath.WalkDir(".", func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasPrefix(e.Name(), "campaign.") {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	})
	require.NoError(t, err)
	if at := strings.Index(all.String(), "PLANTED"); at >= 0 {
		t.Errorf("a secret: …%s…", all.String()[max(0, at-200):min(all.Len(), at+100)])
	}
	if store, err := os.ReadFile("c/campaign.sqlite"); err != nil || bytes.Contains(store, []byte("PLANTED-in-")) {
		t.Errorf("the campaign file holds the value of a secret variable (%v)", err)
	}
	if help, _, _ := invoke(t.Context(), "help", "campaigns"); !strings.Contains(
		strings.Join(strings.Fields(help), " "), "keeps the command line as typed") {
		t.Error("help does not say what the campaign file keeps")
	}
}
