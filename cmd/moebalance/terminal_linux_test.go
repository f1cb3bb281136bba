package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/sys/unix"
)

// onTerminal runs the program with its results on a pseudo-terminal so many columns wide.
func onTerminal(t *testing.T, columns int, args ...string) string {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer screen.Close()
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Skip(err)
	}
	if err := unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Skip(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ,
		&unix.Winsize{Row: 40, Col: uint16(columns)}); err != nil {
		t.Fatal(err)
	}
	var shown bytes.Buffer
	read := make(chan struct{})
	go func() {
		_, _ = io.Copy(&shown, screen) // ends in an error when the other side is closed
		close(read)
	}()
	var stderr bytes.Buffer
	if code := run(t.Context(), args, strings.NewReader(""), terminal, &stderr); code != exitDone {
		t.Errorf("%v: exit %d, %s", args, code, &stderr)
	}
	terminal.Close()
	<-read
	return strings.ReplaceAll(shown.String(), "\r\n", "\n")
}

var escapes = regexp.MustCompile("\x1b\\[[0-9]*m")

// On a terminal, tables and text keep to its width, and a table that is cut says so;
// COLUMNS, NO_COLOR and TERM are honored.
func TestTerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	t.Setenv("COLUMNS", "")
	const ranks = fixtures + "gptoss-ep4-ranks/"
	for _, args := range [][]string{
		{"trace", loop + "normal.sqlite"},
		{"trace", "--table", "imbalance", loop + "normal.sqlite"},
		{"compare", loop + "normal.sqlite", loop + "perfect.sqlite"},
		{"counts", ranks + "counts-normal"},
		{"models"},
		{"place", ranks + "counts-normal", "--redundant", "0,4", "--judge", ranks + "counts-perfect"},
		{"logits", "plans", "--model", "deepseek-v3", "--ep", "8", "--tokens", "1,8"},
	} {
		piped, _, _ := invoke(t.Context(), args...)
		for _, columns := range []int{20, 40, 80, 200} {
			shown := onTerminal(t, columns, args...)
			for line := range strings.Lines(escapes.ReplaceAllString(shown, "")) {
				if line = strings.TrimSpace(line); strings.HasPrefix(line, "Next: ") {
					continue // is one line, as it is typed
				}
				if text.StringWidth(line) > columns && (strings.Contains(line, " ") || strings.HasPrefix(line, "─")) {
					t.Errorf("%v on %d columns: %q", args, columns, line)
				}
			}
		}
		t.Setenv("COLUMNS", "100000")
		if shown := onTerminal(t, 40, args...); escapes.ReplaceAllString(shown, "") != piped {
			t.Errorf("%v: COLUMNS is not honored", args)
		}
		t.Setenv("COLUMNS", "")
	}
	args := []string{"trace", "--table", "imbalance", loop + "normal.sqlite"}
	if shown := onTerminal(t, 40, args...); !escapes.MatchString(shown) {
		t.Errorf("no color: %q", shown)
	}
	for variable, value := range map[string]string{"NO_COLOR": "1", "TERM": "dumb"} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, value)
			if shown := onTerminal(t, 60, args...); strings.Contains(shown, "\x1b") {
				t.Errorf("%q", shown)
			}
		})
	}
}
