package launch

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// daemon is a script that leaves its group and its environment, as lines of sh; it writes
// its number into $PWD/pid and then runs what is given.
func daemon(then string) string {
	return `setsid env -i sh -c 'echo $$ > pid; ` + then + `' & while [ ! -s pid ]; do sleep 0.01; done; `
}

// runScript runs a script as a job; interrupted once its daemon runs if it is to be.
func runScript(t *testing.T, script string, grace Grace, interrupted bool) (Outcome, time.Duration, int) {
	t.Helper()
	folder := t.TempDir()
	pid := func() int {
		text, _ := os.ReadFile(filepath.Join(folder, "pid"))
		n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		return n
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if interrupted {
		go func() {
			for pid() == 0 && ctx.Err() == nil {
				time.Sleep(5 * time.Millisecond)
			}
			time.Sleep(50 * time.Millisecond)
			cancel()
		}()
	}
	ended := time.Now()
	outcome, err := Job{
		Drive: func(ctx context.Context, run func(context.Context, Run) error) error {
			return run(ctx, Run{Words: []string{"sh", "-c", script}, Folder: folder})
		},
		Folder: folder, Dir: folder, Env: os.Environ(), Marker: NewMarker(t.Name()), Grace: grace,
		Ending: func() { ended = time.Now() }, Started: func(Group) {},
	}.Run(ctx)
	if (err != nil) != interrupted {
		t.Fatal(err)
	}
	took := time.Since(ended)
	if n := pid(); n > 0 && alive(n) {
		signal(n, syscall.SIGKILL)
		t.Errorf("process %d still runs", n)
	}
	return outcome, took, pid()
}

// A daemon without the group and the environment of its command, on its output, is ended
// and told of, and does not cost the whole grace.
func TestUnmarkedDaemonIsEnded(t *testing.T) {
	grace := Grace{Interrupt: 200 * time.Millisecond, Terminate: time.Minute}
	o, _, pid := runScript(t, daemon("exec sleep 60"), grace, false)
	if !o.LeftBehind || pid == 0 {
		t.Errorf("%+v, process %d", o, pid)
	}
}

// What ends by itself a moment after its command was not left behind.
func TestWorkersThatEndAreNotLeftBehind(t *testing.T) {
	for _, script := range []string{"sleep 0.3 &", daemon("exec sleep 0.3")} {
		if o, _, _ := runScript(t, script, Grace{Interrupt: time.Minute, Terminate: time.Minute}, false); o.LeftBehind {
			t.Errorf("%s: left behind", script)
		}
	}
}

const stubborn = `trap "" INT TERM; while :; do sleep 0.05; done`

// The grace is for all together, whatever group they are in.
func TestGraceIsTheWholeTime(t *testing.T) {
	_, took, _ := runScript(t, daemon(stubborn)+stubborn,
		Grace{Interrupt: 800 * time.Millisecond, Terminate: 200 * time.Millisecond}, true)
	if took < 900*time.Millisecond || took > 4*time.Second {
		t.Errorf("took %v, want about a second", took)
	}
}

// Cutting the grace ends everything at once.
func TestCutGrace(t *testing.T) {
	cut := make(chan struct{})
	close(cut)
	grace := Grace{Interrupt: time.Minute, Terminate: time.Minute, Cut: cut}
	if _, took, _ := runScript(t, daemon(stubborn)+stubborn, grace, true); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
}
