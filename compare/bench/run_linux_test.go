package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moebalance/moebalance/testdata/require"
)

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

// The bench process is killed with its command running: resuming ends what it
// left behind, and finishes every launch exactly once.
func TestKillAndResume(t *testing.T) {
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
	spec := testSpec(2, log, "{launch}")
	spec.Command.Normal = append(before, spec.Command.Normal...)
	c := create(t, spec)
	folder := c.Folder
	require.NoError(t, c.Close())
	self := require.Value(os.Executable())
	other := exec.Command(self, folder)
	other.Env = append(os.Environ(), childVariable+"=bench")
	require.NoError(t, other.Start())
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
	orphan := require.Value(strconv.Atoi(strings.Fields(lines[1])[1]))
	if !alive(orphan) {
		t.Fatal("the command did not outlive its bench process: nothing is tested")
	}

	c = require.Value(Resume(folder))
	defer c.Close()
	h := testHost("log")
	h.Report = func(e Event) {
		if e.Stage == Starting && alive(orphan) {
			t.Error("a launch starts beside what the killed process left behind")
		}
	}
	require.NoError(t, c.Run(context.Background(), h))
	finishedOnce(t, c)
	second := c.Launches[1].Attempts
	if len(second) != 2 || second[0].State != Interrupted || !strings.Contains(second[0].Error, "1 process") {
		t.Errorf("attempts of the launch that was cut off: %+v", second)
	}
}

// A process killed after its command ended and before its output was read: the
// output is read, and the command not run again.
func TestEndedLaunchIsReadNotRepeated(t *testing.T) {
	c := create(t, testSpec(1))
	require.NoError(t, c.Run(context.Background(), testHost("report")))
	a := c.Launches[1].Attempts[0]
	a.State = Ran
	require.NoError(t, c.store.save(1, a))
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
