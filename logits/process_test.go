//go:build unix

package logits

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moebalance/moebalance/router"
)

// fillVariable makes the test binary fill the named folder instead of testing.
const fillVariable = "MOEBALANCE_TEST_FILL"

var processBatches = []Batch{Equal(1), Equal(2), Equal(5), Equal(64), Unequal(3, 0, 8, 1), Unequal(300, 299, 0, 7), Unequal(7, 299, 0, 300)}

func processSpec(t testing.TB) Spec { return specOf(t, small(router.Renormalize), 4) }

func TestMain(m *testing.M) {
	if dir := os.Getenv(fillVariable); dir != "" {
		os.Exit(fillProcess(dir))
	}
	os.Exit(m.Run())
}

func fillProcess(dir string) int {
	layout, err := router.Contiguous(16, 4)
	if err == nil {
		var c *Cache
		if c, err = Open(dir, Spec{Model: "test", Gate: small(router.Renormalize), Layout: layout}); err == nil {
			fmt.Println("ready")
			_, err = c.Fill(context.Background(), allRanks(4), processBatches, nil)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// startFill starts a process that fills the folder.
func startFill(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), fillVariable+"="+dir)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestProcessesFillOneCache(t *testing.T) {
	dir := t.TempDir()
	fillers := []*exec.Cmd{startFill(t, dir), startFill(t, dir), startFill(t, dir)}
	for _, c := range fillers {
		if err := c.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := len(verified(t, dir).Entries), 4*len(processBatches); got != want {
		t.Errorf("%d entries, want %d", got, want)
	}
	for _, name := range names(t, dir) {
		if !strings.HasSuffix(name, suffix) {
			t.Errorf("left behind: %s", name)
		}
	}
}

// A writer killed at any moment leaves whole entries and, at most, temporaries,
// which the next one sweeps.
func TestKilledAtAnyMoment(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	killed := 0
	for range 12 {
		dir := t.TempDir()
		c := startFill(t, dir)
		time.Sleep(time.Duration(2+rng.IntN(40)) * time.Millisecond)
		if err := c.Process.Kill(); err != nil {
			t.Log(err) // it was done
		}
		if c.Wait() != nil {
			killed++
		}
		for _, name := range names(t, dir) {
			if !strings.HasSuffix(name, suffix) {
				continue
			}
			if _, err := ReadEntry(filepath.Join(dir, name)); err != nil {
				t.Fatalf("after a kill: %v", err)
			}
		}
		fill(t, openCache(t, dir, processSpec(t)), processBatches...)
		if got, want := len(verified(t, dir).Entries), 4*len(processBatches); got != want {
			t.Errorf("%d entries, want %d", got, want)
		}
		for _, name := range names(t, dir) {
			if !strings.HasSuffix(name, suffix) {
				t.Errorf("not swept: %s", name)
			}
		}
	}
	if killed == 0 {
		t.Error("no process was killed in time: the test proved nothing")
	}
}

func TestSweepSparesTheLiving(t *testing.T) {
	dir := t.TempDir()
	living, err := newPending(filepath.Join(dir, "a"+suffix))
	if err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(dir, pendingPrefix+"dead")
	other := filepath.Join(dir, "notes.txt")
	for _, path := range []string{dead, other} {
		if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := sweep(dir); n != 1 || err != nil {
		t.Fatalf("swept %d, %v; want 1", n, err)
	}
	if got, want := names(t, dir), []string{filepath.Base(living.Name()), "notes.txt"}; !slices.Equal(got, want) {
		t.Errorf("left %v, want %v", got, want)
	}
	if err := living.commit(); err != nil {
		t.Fatal(err)
	}
	if got, want := names(t, dir), []string{"a" + suffix, "notes.txt"}; !slices.Equal(got, want) {
		t.Errorf("left %v, want %v", got, want)
	}
}
