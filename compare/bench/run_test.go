package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/gain"
)

// needsProc skips what can only be seen in /proc.
func needsProc(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("looks for processes in /proc")
	}
}

// alive reports whether a process runs.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(text), ") Z ")
}

// finishedOnce wants every launch finished, exactly once and last.
func finishedOnce(t *testing.T, c *Campaign) {
	t.Helper()
	for _, l := range c.Launches {
		done := 0
		for _, a := range l.Attempts {
			if a.State == Finished {
				done++
			}
		}
		if _, last := l.Done(); done != 1 || !last {
			t.Errorf("launch %d has the attempts %+v, want one finished, last", l.Position, l.Attempts)
		}
	}
}

func TestInterruptAndResume(t *testing.T) {
	waitForLock(t, 50*time.Millisecond)
	t.Setenv("BENCH_TEST_STALL", "4")
	log := filepath.Join(t.TempDir(), "log")
	c := create(t, testSpec(t, 3, log, "{launch}", "{arm}"))
	ctx, cancel := context.WithCancel(context.Background())
	h := testHost("log")
	h.Report = func(e Event) {
		if e.Stage == Starting && e.Launch.Position == 3 {
			go func() {
				// until its command runs
				for text := ""; strings.Count(text, "\n") < 4; time.Sleep(5 * time.Millisecond) {
					b, _ := os.ReadFile(log)
					text = string(b)
				}
				cancel()
			}()
		}
	}
	if err := c.Run(ctx, h); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want the interrupt", err)
	}
	if l := c.Launches[3]; len(l.Attempts) != 1 || l.Attempts[0].State != Interrupted {
		t.Fatalf("the running launch has %+v, want one interrupted attempt", l.Attempts)
	}
	folder := c.Folder
	if _, err := Resume(folder); !errors.Is(err, errBusy) {
		t.Errorf("a second writer got %v, want errBusy", err)
	}
	reader, err := Open(folder)
	if err != nil {
		t.Fatalf("reading beside the writer: %v", err)
	}
	if reader.Finished() != 3 {
		t.Errorf("the reader sees %d finished launches, want 3", reader.Finished())
	}
	reader.Close()
	c = reopen(t, c)
	h.Report = nil
	if err := c.Run(context.Background(), h); err != nil {
		t.Fatal(err)
	}
	finishedOnce(t, c)
	// Every launch but the interrupted one ran once, in the order of the plan.
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for line := range strings.Lines(string(text)) {
		order = append(order, strings.Fields(line)[0])
	}
	if got, want := strings.Join(order, " "), "0 1 2 3 3 4 5"; got != want {
		t.Errorf("ran %s, want %s", got, want)
	}
}

// The bench process is killed with its command running: resuming ends what it
// left behind, and finishes every launch exactly once.
func TestKillAndResume(t *testing.T) {
	needsProc(t)
	t.Run("with its environment", func(t *testing.T) { testKillAndResume(t, nil) })
	// Such processes carry no marker any more: only their group tells whose they are.
	t.Run("without its environment", func(t *testing.T) {
		testKillAndResume(t, []string{"env", "-i", childVariable + "=log", "BENCH_TEST_STALL=2"})
	})
}

// recorded reports whether the processes of a launch are on record.
func recorded(folder string, position int) bool {
	c, err := Open(folder)
	if err != nil {
		return false
	}
	defer c.Close()
	a := c.Launches[position].Attempts
	return len(a) > 0 && len(a[0].Groups) > 0
}

func testKillAndResume(t *testing.T, before []string) {
	t.Setenv("BENCH_TEST_STALL", "2")
	log := filepath.Join(t.TempDir(), "log")
	spec := testSpec(t, 2, log, "{launch}")
	spec.Command.Normal = append(before, spec.Command.Normal...)
	c := create(t, spec)
	folder := c.Folder
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	other := exec.Command(self, folder)
	other.Env = append(os.Environ(), childVariable+"=bench")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for until := time.Now().Add(time.Minute); len(lines) < 2 &&
		time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if text, _ := os.ReadFile(log); recorded(folder, 1) { // else the child may be ahead of its record
			lines = strings.Split(strings.TrimSpace(string(text)), "\n")
		}
	}
	other.Process.Kill()
	other.Wait()
	if len(lines) != 2 {
		t.Fatalf("the log holds %q, want the second launch running", lines)
	}
	orphan, err := strconv.Atoi(strings.Fields(lines[1])[1])
	if err != nil {
		t.Fatal(err)
	}
	if !alive(orphan) {
		t.Fatal("the command did not outlive its bench process: nothing is tested")
	}

	c, err = Resume(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	h := testHost("log")
	h.Report = func(e Event) {
		if e.Stage == Starting && alive(orphan) {
			t.Error("a launch starts beside what the killed process left behind")
		}
	}
	if err := c.Run(context.Background(), h); err != nil {
		t.Fatal(err)
	}
	finishedOnce(t, c)
	second := c.Launches[1].Attempts
	if len(second) != 2 || second[0].State != Interrupted || !strings.Contains(second[0].Error, "1 process") {
		t.Errorf("attempts of the launch that was cut off: %+v", second)
	}
}

// A process killed after its command ended and before its output was read: the
// output is read, and the command not run again.
func TestEndedLaunchIsReadNotRepeated(t *testing.T) {
	c := create(t, testSpec(t, 1))
	if err := c.Run(context.Background(), testHost("report")); err != nil {
		t.Fatal(err)
	}
	a := c.Launches[1].Attempts[0]
	a.State = Ran
	if err := c.store.save(1, a); err != nil {
		t.Fatal(err)
	}
	c = reopen(t, c)
	if _, done := c.Launches[1].Done(); done {
		t.Fatal("the launch counts as finished before its output is read")
	}
	h := testHost("fail")
	if err := c.Run(context.Background(), h); err != nil {
		t.Fatalf("%v: the command was started again", err)
	}
	finishedOnce(t, c)
}

func TestServerAndClient(t *testing.T) {
	addr := freeAddress(t)
	spec := testSpec(t, 1)
	self := spec.Command.Normal[0]
	spec.Command = Command{
		Server: []string{"env", childVariable + "=server", self, addr}, Ready: "http://" + addr + "/health",
		Normal: []string{"env", childVariable + "=client", self, "http://" + addr + "/bench"},
	}
	c := create(t, spec)
	if err := c.Run(context.Background(), testHost("silent")); err != nil {
		t.Fatal(err)
	}
	finishedOnce(t, c)
	for _, p := range Recorded(c).Proof {
		if p.Grade != gain.Measured {
			t.Errorf("%+v: the server of this arm did not get the treatment", p)
		}
	}
	if resp, err := http.Get(spec.Command.Ready); err == nil {
		resp.Body.Close()
		t.Error("the server still answers")
	}

	spec.Command.Server = []string{"env", childVariable + "=fail", self}
	c = create(t, spec)
	if err := c.Run(context.Background(), testHost("silent")); err == nil ||
		!strings.Contains(err.Error(), "ended before it was ready") {
		t.Errorf("error %v, want that the server ended", err)
	}
	spec.Command.Server = []string{"sleep", "60"}
	spec.Timeout = 300 * time.Millisecond
	c = create(t, spec)
	if err := c.Run(context.Background(), testHost("silent")); err == nil ||
		!strings.Contains(err.Error(), "time limit of 300ms passed") {
		t.Errorf("error %v, want that the server did not answer", err)
	}
}

// Every process of a launch can be found again: by the campaign's mark, which
// programs that rename themselves are asked to leave readable.
func TestProcessesAreMarked(t *testing.T) {
	spec := testSpec(t, 1)
	spec.Command.Normal, spec.Custom = []string{"sh", "-c", "env; echo rate 1"}, []string{`rate::higher=rate (\d+)`}
	c := create(t, spec)
	if err := c.Run(context.Background(), testHost("none")); err != nil {
		t.Fatal(err)
	}
	for _, l := range c.Launches {
		text, err := os.ReadFile(filepath.Join(c.Folder, l.Attempts[0].Folder, launch.Stdout))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{fmt.Sprintf("\nMOEBALANCE_LAUNCH=%s/%d\n", c.ID, l.Position), "\nSPT_NOENV=1\n"} {
			if !strings.Contains("\n"+string(text), want) {
				t.Errorf("launch %d has no %q in its environment:\n%s", l.Position, want, text)
			}
		}
	}
}
