//go:build unix

package target

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/testdata/require"
)

// guardedFile is a file whose verb was given these words.
func guardedFile(t *testing.T, path string, words ...string) *File {
	t.Helper()
	var o struct {
		File `flag:"output,o"`
	}
	root := &cobra.Command{Use: "test", RunE: func(*cobra.Command, []string) error { return nil },
		Args: cobra.ArbitraryArgs, SilenceUsage: true, SilenceErrors: true}
	flags.Bind(root, &o, func(string) string { return "" }, ParseFile)
	Guard(root, func(string) bool { return true })
	root.SetArgs(words)
	require.NoError(t, root.Execute())
	o.Path = path
	return &o.File
}

func write(t *testing.T, path string, render func(io.Writer) error) error {
	t.Helper()
	return guardedFile(t, path).Write(nil, render)
}

func putText(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

func checkContent(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v; want %q", filepath.Base(path), got, err, want)
	}
}

func checkMode(t *testing.T, path string, want fs.FileMode) {
	t.Helper()
	if info, err := os.Lstat(path); err != nil || info.Mode() != want {
		t.Errorf("%s has mode %v, %v; want %v", filepath.Base(path), info.Mode(), err, want)
	}
}

// A new file has the permissions that the user lets new files have, one that is
// there keeps its own.
func TestWriteFileKeepsPermissions(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o027))
	path := filepath.Join(t.TempDir(), "result")
	require.NoError(t, write(t, path, putText("new")))
	checkMode(t, path, 0o640)
	require.NoError(t, os.Chmod(path, 0o606))
	require.NoError(t, write(t, path, putText("newer")))
	checkContent(t, path, "newer")
	checkMode(t, path, 0o606)
}

// A pipe gets the text and stays a pipe, as any device does.
func TestWriteFileThroughPipes(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	reader := require.Value(os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0))
	defer reader.Close()
	require.NoError(t, write(t, pipe, putText("through")))
	if info, err := os.Stat(pipe); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
		t.Fatalf("the pipe became %v, %v", info.Mode(), err)
	}
	if text, err := io.ReadAll(reader); err != nil || string(text) != "through" {
		t.Errorf("the pipe's reader got %q, %v", text, err)
	}
}

// What fails leaves what was there, and nothing beside it; the error has the name
// that was asked for.
func TestWriteFileFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "result")
	require.NoError(t, write(t, path, putText("old")))
	broken := errors.New("broken off")
	if err := write(t, path, func(w io.Writer) error { return errors.Join(putText("half")(w), broken) }); !errors.Is(
		err, broken) {
		t.Errorf("%v, want %v", err, broken)
	}
	checkContent(t, path, "old")
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind %v, %v", entries, err)
	}
	missing := filepath.Join(dir, "none", "result")
	if err := write(t, missing, putText("x")); !errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), missing) {
		t.Errorf("%v, want one about %s", err, missing)
	}
	round := filepath.Join(dir, "round")
	if err := errors.Join(os.Symlink("round", round), write(t, round, putText("x"))); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a link to itself: %v, want %v", err, syscall.ELOOP)
	}
}

// A folder that nothing can be written in is said before any work.
func TestUnwritableFolderIsFoundFirst(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root writes everywhere")
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o555))
	path := filepath.Join(dir, "result")
	if err := guardedFile(t, path).check(); !errors.Is(err, ErrRefused) ||
		!strings.Contains(err.Error(), dir) {
		t.Errorf("%v, want one about %s", err, dir)
	}
}
