package draft

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/moebalance/moebalance/testdata/require"
)

// A draft takes the target's place, or goes; drafts of dead writers go, and drafts of living ones and
// files that others named so stay.
func TestDrafts(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"notes.txt", ".x-notes", ".x-0123456789abcdef", ".x-00000000deadbeef"} {
		require.NoError(t, os.WriteFile(at(name), []byte("half"), 0o600))
		if name != ".x-0123456789abcdef" {
			require.NoError(t, os.Chtimes(at(name), time.Time{}, time.Now().Add(-stale-time.Minute)))
		}
	}
	Sweep(dir, ".x-")
	broken := errors.New("broken")
	for _, c := range []error{nil, nil, broken} {
		err := Write(".x-", at("a"), 0o600, func(f *os.File) error {
			_, err := f.WriteString("whole")
			return errors.Join(err, c)
		})
		if text, _ := os.ReadFile(at("a")); !errors.Is(err, c) || string(text) != "whole" {
			t.Errorf("%v, %q", err, text)
		}
	}
	require.NoError(t, os.Symlink("a", at("link")))
	if err := Write(".x-", at("link"), 0o600, func(*os.File) error { return nil }); err != nil {
		t.Error(err)
	}
	if to, err := os.Readlink(at("link")); err != nil || to != "a" || Place(at("link")) != Place(at("a")) {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	if err := os.Symlink("none/../turn", at("turn")); err != nil || Place(at("turn")) == "" { // it must end
		t.Error(err)
	}
	_ = os.Remove(at("turn"))
	entries, err := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{".x-0123456789abcdef", ".x-notes", "a", "link", "notes.txt"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("left %v, want %v", names, want)
	}
}
