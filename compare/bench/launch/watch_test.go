package launch

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/moebalance/moebalance/testdata/require"
)

// A launch of which most is loading a model: clocks of 210 MHz while idle, 1980 and 1900
// while busy. A mean over all looks would say 822 MHz, the last look 210.
func TestClocksWhileBusy(t *testing.T) {
	looks := []GPU{{ClockMHz: 210}, {ClockMHz: 210}, {ClockMHz: 1980, BusyLooks: 1}, {ClockMHz: 210},
		{ClockMHz: 1900, BusyLooks: 1}, {ClockMHz: 210}}
	taken := make(chan struct{}) // closed by the look after the last, when that has been taken in
	n := 0
	interval := gpuInterval
	gpuInterval = time.Millisecond
	defer func() { gpuInterval = interval }()
	end := WatchGPUs(context.Background(), func(context.Context) ([]GPU, error) {
		if n++; n == len(looks)+1 {
			close(taken)
		}
		if n > len(looks) {
			return nil, errors.New("enough")
		}
		l := looks[n-1]
		l.Processes = make([]GPUProcess, n)
		return []GPU{l}, nil
	}, NewMarker("x"))
	<-taken
	gpus, err := end()
	if err != nil || len(gpus) != 1 {
		t.Fatal(gpus, err)
	}
	if g := gpus[0]; g.BusyLooks != 2 || g.ClockMHz != 1940 ||
		len(g.Processes) != 1 {
		t.Errorf("%+v, want the mean of 1980 and 1900 MHz, the first look's process", g)
	}
}

// A group is ended by its number only while it is the group that was recorded.
func TestEndGroups(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("needs /proc")
	}
	// Its own environment is empty, so no marker finds it, and it ignores SIGINT.
	cmd := exec.Command("env", "-i", "/bin/sh", "-c", `trap "" INT; echo ready; while :; do sleep 0.02; done`)
	out := require.Value(os.Create(filepath.Join(t.TempDir(), "out")))
	defer out.Close()
	p, err := startProcess(cmd.Args, nil, "", out, out)
	if err == nil {
		for text := ""; text == ""; time.Sleep(5 * time.Millisecond) {
			b, _ := os.ReadFile(out.Name())
			text = string(b)
		}
	} else {
		t.Skip(err)
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
