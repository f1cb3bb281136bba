package launch

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/moebalance/moebalance/testdata/require"
)

// A process that starts itself over and over is for a good part of its time without
// the environment by which it is known.
func TestRestlessDaemonIsEnded(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("looks for processes in /proc")
	}
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

// alive reports whether a process runs.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(text), ") Z ")
}
