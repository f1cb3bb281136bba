package input

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
)

func TestError(t *testing.T) {
	for _, c := range []struct {
		e    Error
		want string
	}{
		{Error{File: "a.st", Position: "byte 8", Expected: "a header of 64 bytes", Found: "12"},
			"a.st: byte 8: want a header of 64 bytes, have 12"},
		{Error{File: "a", Found: "it is empty", Try: "export it again"}, "a: it is empty; export it again"},
		{Error{File: "a", Expected: "more", Err: io.ErrUnexpectedEOF}, "a: want more, have unexpected EOF"},
		{Error{File: "a", Found: "two\n lines"}, "a: two lines"},
	} {
		if got := c.e.Error(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	var err error = &Error{File: "a", Err: io.EOF}
	if !errors.Is(err, io.EOF) {
		t.Error("the cause is lost")
	}
	if long := (&Error{File: "a", Found: strings.Repeat("x", 5000)}).Error(); len(long) > 500 {
		t.Errorf("%d bytes", len(long))
	}
}

// Only a file itself is opened, and a pointer to one is named.
func TestRegular(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		content, want string
	}{
		"file": {"content", ""}, "short": {"", ""}, "lfs": {"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"},
		"none": {"", "no such file"}, ".": {"", "a folder"},
	} {
		path := filepath.Join(dir, name)
		if name != "none" && name != "." {
			require.NoError(t, os.WriteFile(path, []byte(c.content), 0o600))
		}
		head, err := Head(path, 4)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) ||
			err == nil && string(head) != c.content[:min(4, len(c.content))] {
			t.Errorf("%s: %q, %v", name, head, err)
		}
	}
}

// A pipe or a device never is read.
func TestPipes(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, path := range []string{pipe, os.DevNull} {
		if _, err := ReadFile(path, 4); err == nil || !strings.Contains(err.Error(), "a pipe, socket or device") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
