package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The first signal ends what waits for a pipe whose writer says nothing.
func TestInterruptedWhileAPipeIsSilent(t *testing.T) {
	folder := t.TempDir()
	pipe := filepath.Join(folder, "meta_info.json")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close() // lets go of those left behind
	for _, args := range [][]string{
		{"counts", pipe}, {"counts", folder}, {"counts", "--placement", pipe, folder},
		{"counts", "--model", pipe, folder},
		{"trace", "--counts", folder, loop + "normal.sqlite"}, {"compare", "--counts-normal", folder, loop +
			"normal.sqlite", loop + "perfect.sqlite"}, {"report", folder},
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, interrupt)
		ended := make(chan int, 1)
		var stdout, stderr bytes.Buffer
		go func() { ended <- run(ctx, args, strings.NewReader(""), &stdout, &stderr) }()
		select {
		case code := <-ended:
			if code != exitInterrupted || stdout.Len() > 0 || !strings.HasSuffix(stderr.String(), "interrupted\n") ||
				strings.Count(stderr.String(), "\n") != 1 {
				t.Errorf("%v: exit %d, stdout %q, stderr %q", args, code, &stdout, &stderr)
			}
		case <-time.After(time.Minute):
			t.Errorf("%v: still waits", args)
		}
	}
}
