package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shortTour prepares, finds, and draws, in less than a second.
var shortTour = tour{
	quickTour[0],
	{"", "logits generate --model gpt-oss-120b --ep 2 --tokens 1,8 --cache DIR/cache"},
	{"logits", "logits verify DIR/cache -o DIR/logits.json"},
	quickTour[2],
	{"", "report -o DIR/report.html DIR/logits.json"},
}

func TestQuickstart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a tour's folder")
	var out, errs bytes.Buffer
	if err := shortTour.take(t.Context(), dir, "./mb", &out, &errs); err != nil {
		t.Fatal(err, errs.String())
	}
	first, quoted := out.String(), strings.ReplaceAll(dir, "'", `'\''`)
	if want := "$ ./mb logits verify '" + quoted + "/cache' -o '" + quoted +
		"/logits.json'\n"; !strings.Contains(errs.String(), want) {
		t.Errorf("stderr %q lacks %q", errs.String(), want)
	}
	lines := strings.Split(strings.TrimSuffix(first, "\n"), "\n")
	want := []string{"Balanced routing is 22.9 % faster.",
		"4 files are exact and as balanced as can be.",
		"Rank 2 gets 1.85 × the mean load in layer 0; uneven in 2 of 2 layers.", "", "page: " +
			filepath.Join(dir, "report.html"), "", "next, ", "  ./mb logits generate ", "  ./mb bench ",
		"  ./mb report "}
	if len(lines) != len(want) {
		t.Fatalf("stdout is %q, want %d lines", first, len(want))
	}
	for i, line := range lines {
		if !strings.Contains(line, want[i]) {
			t.Errorf("line %q, want %q in it", line, want[i])
		}
	}
	if page, err := os.ReadFile(filepath.Join(dir, "report.html")); err != nil ||
		!bytes.HasPrefix(page, []byte("<!DOCTYPE html>")) {
		t.Errorf("report.html: %v, %.20q", err, page)
	}
}

// The next commands call this program as it was called, and have flags that exist.
func TestNextCommands(t *testing.T) {
	commands := 0
	for line := range strings.SplitSeq(strings.ReplaceAll(next("moebalance"), " && ", "\n"), "\n") {
		if strings.HasPrefix(line, "  moebalance ") || strings.HasPrefix(line, "moebalance ") {
			checkCommand(t, line)
			commands++
		}
	}
	if commands != 3 {
		t.Errorf("%d commands, want 3", commands)
	}
	if got := again("/tmp/go-build1/b001/exe/moebalance"); got != "go run ./cmd/moebalance" {
		t.Errorf("started by 'go run', the program is called %q again", got)
	}
	if got := again("./my tool"); got != "'./my tool'" {
		t.Errorf("a binary is called %q again", got)
	}
}

func TestQuickstartStops(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	dir := filepath.Join(t.TempDir(), "tour")
	_, stderr, code := invoke(ctx, "quickstart", "--dir", dir)
	if code != exitInterrupted || !strings.Contains(stderr, "its files are in") {
		t.Errorf("exit %d, %q; want %d", code, stderr, exitInterrupted)
	}
	var out, errs bytes.Buffer
	err := tour{{command: "trace DIR/none.sqlite"}}.take(t.Context(), t.TempDir(), "mb", &out, &errs)
	if err == nil || !strings.Contains(err.Error(), "exit code 1") || out.Len() > 0 {
		t.Errorf("error %v, stdout %q", err, out.String())
	}
}
