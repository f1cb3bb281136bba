//go:build unix

package logits

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moebalance/moebalance/router"
)

// fillVariable makes the test binary fill the named folder instead of testing;
// haltVariable, halt after the first entry; againVariable, empty and fill it until killed.
const (
	fillVariable  = "MOEBALANCE_TEST_FILL"
	haltVariable  = "MOEBALANCE_TEST_HALT"
	againVariable = "MOEBALANCE_TEST_AGAIN"
)

var processTokens = []int{0, 1, 2, 5, 64, 299, 300}

func processSpec(t testing.TB) Spec { return specOf(t, small(router.Renormalize), 4) }

func TestMain(m *testing.M) {
	if dir := os.Getenv(fillVariable); dir != "" {
		code := fillProcess(dir)
		for code == 0 && os.Getenv(againVariable) != "" {
			entries, _ := filepath.Glob(filepath.Join(dir, "*"+suffix))
			for _, path := range entries {
				_ = os.Remove(path)
			}
			code = fillProcess(dir)
		}
		os.Exit(code)
	}
	os.Exit(m.Run())
}

func fillProcess(dir string) int {
	layout, err := router.Contiguous(16, 4)
	if err == nil {
		var c *Cache
		if c, err = Open(dir, Spec{Model: "test", Gate: small(router.Renormalize), Layout: layout}); err == nil {
			fmt.Println("ready")
			var each func(Outcome)
			if os.Getenv(haltVariable) != "" {
				// what works beside it comes no further than the end of its entry
				each = func(Outcome) { time.Sleep(time.Hour) }
			}
			_, err = c.Fill(context.Background(), allRanks(4), processTokens, each)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// startFill starts a process that fills the folder.
func startFill(t *testing.T, dir string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = append(append(os.Environ(), fillVariable+"="+dir), env...)
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
	if got, want := len(verified(t, dir).Entries), 4*len(processTokens); got != want {
		t.Errorf("%d entries, want %d", got, want)
	}
	for _, name := range names(t, dir) {
		if !strings.HasSuffix(name, suffix) {
			t.Errorf("left behind: %s", name)
		}
	}
}

// damageAll changes a byte of every entry of a full cache, and returns the entries
// as they were and as they are now, by name.
func damageAll(t *testing.T, dir string) (whole, damaged map[string][]byte) {
	t.Helper()
	whole, damaged = map[string][]byte{}, map[string][]byte{}
	for i, name := range names(t, dir) {
		path := filepath.Join(dir, name)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		bad := bytes.Clone(content)
		bad[(i*97)%len(bad)] ^= 4
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		whole[name], damaged[name] = content, bad
	}
	return whole, damaged
}

func TestProcessesMendOneCache(t *testing.T) {
	dir := t.TempDir()
	fill(t, openCache(t, dir, processSpec(t)), processTokens...)
	whole, _ := damageAll(t, dir)
	menders := []*exec.Cmd{startFill(t, dir), startFill(t, dir), startFill(t, dir)}
	for _, c := range menders {
		if err := c.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := names(t, dir), slices.Sorted(maps.Keys(whole)); !slices.Equal(got, want) {
		t.Errorf("the folder holds %v, want %v", got, want)
	}
	for name, want := range whole {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not as it was (%v)", name, err)
		}
	}
}

// stats tells which files are the entries of a cache, in order of their names.
func stats(t *testing.T, dir string) (files []os.FileInfo) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		file, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// A mender killed at any moment leaves every entry either as it found it or whole.
func TestKilledWhileMending(t *testing.T) {
	dir := t.TempDir()
	fill(t, openCache(t, dir, processSpec(t)), processTokens...)
	rng := rand.New(rand.NewPCG(8, 8))
	between := 0
	for round := range 12 {
		whole, damaged := damageAll(t, dir)
		unchanged := stats(t, dir)
		var c *exec.Cmd
		if round%2 == 0 { // as soon as it has mended something, else at any moment
			c = startFill(t, dir, haltVariable+"=1", "GOMAXPROCS=1")
			for until := time.Now().Add(time.Minute); slices.EqualFunc(stats(t, dir), unchanged, os.SameFile) &&
				time.Now().Before(until); {
				time.Sleep(100 * time.Microsecond)
			}
		} else {
			c = startFill(t, dir)
			time.Sleep(time.Duration(2+rng.IntN(40)) * time.Millisecond)
		}
		if err := c.Process.Kill(); err != nil {
			t.Log(err) // it was done
		}
		_ = c.Wait()
		mended := 0
		for name := range whole {
			got, err := os.ReadFile(filepath.Join(dir, name))
			switch {
			case err == nil && bytes.Equal(got, whole[name]):
				mended++
			case err != nil || !bytes.Equal(got, damaged[name]):
				t.Fatalf("%s is neither as it was found nor whole (%v)", name, err)
			}
		}
		if mended > 0 && mended < len(whole) {
			between++
		}
		for _, o := range fill(t, openCache(t, dir, processSpec(t)), processTokens...) {
			if o.New {
				t.Errorf("%s went missing", o.Path)
			}
		}
		if got, want := names(t, dir), slices.Sorted(maps.Keys(whole)); !slices.Equal(got, want) {
			t.Errorf("the folder holds %v, want %v", got, want)
		}
		verified(t, dir)
	}
	if between == 0 {
		t.Error("no process was killed between two entries: the test proved nothing")
	}
}

// Where nothing can be written a whole cache serves as it is, and a damaged one is
// one error that names the entry, what is wrong with it, and why it stays so.
func TestReadOnlyFolder(t *testing.T) {
	dir := t.TempDir()
	fill(t, openCache(t, dir, processSpec(t)), 5)
	withoutPrivilege(t, dir)
	c := openCache(t, dir, processSpec(t))
	for _, o := range fill(t, c, 5) {
		if o.New || o.Damage != nil {
			t.Errorf("written in a folder that cannot be: %+v", o)
		}
	}
	if _, err := c.Get(2, 5); err != nil {
		t.Error(err)
	}
	path, err := c.Path(2, 5)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	_, err = c.Fill(t.Context(), allRanks(4), []int{5}, nil)
	if !errors.Is(err, ErrDamaged) || !errors.Is(err, fs.ErrPermission) || strings.ContainsRune(err.Error(), '\n') ||
		!strings.Contains(err.Error(),
			fmt.Sprintf("entry %q is damaged: byte 584: want 0x09, have the end of the file, and cannot be replaced: ",
				path)) {
		t.Errorf("a damaged entry in a read-only folder: %v", err)
	}
}

// withoutPrivilege makes the folder read-only, its files writable, and the rest of
// the test run as somebody whom that binds.
func withoutPrivilege(t *testing.T, dir string) {
	t.Helper()
	paths := []string{filepath.Dir(dir)}
	for _, name := range names(t, dir) {
		paths = append(paths, filepath.Join(dir, name))
	}
	for _, path := range paths {
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	root := os.Geteuid() == 0
	if root {
		if err := syscall.Seteuid(65534); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if root {
			if err := syscall.Seteuid(0); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := os.ReadDir(dir); err != nil {
		t.Skipf("nobody without privilege gets to the folder of temporary files: %v", err)
	}
}

// A writer killed at any moment leaves whole entries and, at most, temporaries,
// which the next one sweeps.
func TestKilledAtAnyMoment(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 12 {
		dir := t.TempDir()
		c := startFill(t, dir, againVariable+"=1")
		time.Sleep(time.Duration(2+rng.IntN(40)) * time.Millisecond)
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if c.Wait() == nil {
			t.Fatal("the process ended by itself")
		}
		for _, name := range names(t, dir) {
			if !strings.HasSuffix(name, suffix) {
				continue
			}
			if _, err := ReadEntry(filepath.Join(dir, name)); err != nil {
				t.Fatalf("after a kill: %v", err)
			}
		}
		fill(t, openCache(t, dir, processSpec(t)), processTokens...)
		if got, want := len(verified(t, dir).Entries), 4*len(processTokens); got != want {
			t.Errorf("%d entries, want %d", got, want)
		}
		for _, name := range names(t, dir) {
			if !strings.HasSuffix(name, suffix) {
				t.Errorf("not swept: %s", name)
			}
		}
	}
}
