//go:build unix

package safetensors

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Opening a pipe that nobody writes to must not wait.
func TestPipesAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe.safetensors")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	for _, open := range []func() error{
		func() error { _, err := Open(path); return err },
		func() error { _, err := ReadTensor(path, "x"); return err },
	} {
		done := make(chan error, 1)
		go func() { done <- open() }()
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), "want a regular file, have a pipe") {
				t.Errorf("got %v", err)
			}
		case <-time.After(time.Minute):
			t.Fatal("opening a pipe waits for a writer")
		}
	}
}
