//go:build unix

package draft

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// Drafts of dead writers go; drafts of living ones, and files that others named so, stay.
func TestSweepSparesTheLiving(t *testing.T) {
	dir := t.TempDir()
	living, err := New(".x-", filepath.Join(dir, "a"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(dir, ".x-00000000deadbeef")
	other, named := filepath.Join(dir, "notes.txt"), filepath.Join(dir, ".x-notes")
	for _, path := range []string{dead, other, named} {
		if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := Sweep(dir, ".x-"); n != 1 || err != nil {
		t.Fatalf("swept %d, %v; want 1", n, err)
	}
	if got, want := names(t, dir), []string{filepath.Base(living.Name()), ".x-notes", "notes.txt"}; !slices.Equal(got,
		want) {
		t.Errorf("left %v, want %v", got, want)
	}
	if err := living.Commit(); err != nil {
		t.Fatal(err)
	}
	if got, want := names(t, dir), []string{".x-notes", "a", "notes.txt"}; !slices.Equal(got, want) {
		t.Errorf("left %v, want %v", got, want)
	}
}
