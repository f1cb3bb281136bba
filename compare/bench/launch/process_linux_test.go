package launch

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moebalance/moebalance/testdata/require"
)

// A process that starts itself over and over is for a good part of its time without
// the environment by which it is known.
func TestRestlessDaemonIsEnded(t *testing.T) {
	for range 5 {
		const mark = "MOEBALANCE_TEST_RESTLESS=1"
		cmd := exec.Command("sh", "-c", `trap "" INT; exec sh -c "$0" "$0"`, `exec sh -c "$0" "$0"`)
		cmd.Env = append(os.Environ(), mark)
		require.NoError(t, cmd.Start())
		go func() { _ = cmd.Wait() }()
		ended := 0
		for until := time.Now().Add(5 * time.Second); ended == 0 && time.Now().Before(until); {
			ended = End(Marker(mark), nil, Grace{Interrupt: 50 * time.Millisecond, Terminate: 50 * time.Millisecond})
		}
		if pid := cmd.Process.Pid; ended == 0 || alive(pid) {
			_ = cmd.Process.Kill() // the test has failed already
			t.Fatalf("ended %d processes, and process %d runs: %v", ended, pid, alive(pid))
		}
	}
}

// A group is ended by its number only while it is the group that was recorded.
func TestEndGroups(t *testing.T) {
	// Its own environment is empty, so no marker finds it, and it ignores SIGINT.
	cmd := exec.Command("env", "-i", "/bin/sh", "-c", `trap "" INT; echo ready; while :; do sleep 0.02; done`)
	out := require.Value(os.Create(filepath.Join(t.TempDir(), "out")))
	defer out.Close()
	p := require.Value(startProcess(cmd.Args, nil, "", out, out))
	for text := ""; text == ""; time.Sleep(5 * time.Millisecond) {
		b, _ := os.ReadFile(out.Name())
		text = string(b)
	}
	defer signal(-p.cmd.Process.Pid, syscall.SIGKILL)
	g := p.group()
	grace := Grace{Interrupt: 50 * time.Millisecond, Terminate: 5 * time.Second}
	for name, other := range map[string]Group{
		"of another boot":    {g.ID, g.Session, g.Started, "x"},
		"of another session": {g.ID, g.Session + "1", g.Started, g.Boot},
		"of an earlier one":  {g.ID, g.Session, g.Started - 1, g.Boot},
		"of a later one":     {g.ID, g.Session, g.Started + 1, g.Boot},
		"not recorded":       {},
		"of another number":  {1 << 22, g.Session, g.Started, g.Boot},
	} {
		if n := End("", []Group{other}, grace); n != 0 {
			t.Errorf("%s: ended %d processes", name, n)
		}
	}
	if n := End("", []Group{g, g}, grace); n < 1 || len(inGroup(g.ID)) > 0 {
		t.Errorf("ended %d processes, group has %v", n, inGroup(g.ID))
	}
}

// alive reports whether a process runs.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(text), ") Z ")
}
