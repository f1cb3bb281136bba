package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/source"
)

// shortTour prepares, finds, and draws, in less than a second.
var shortTour = []tourStep{
	tour[0],
	{args: []string{"logits", "generate", "--model", "gpt-oss-120b", "--ep", "2", "--tokens", "1,8", "--cache",
		"DIR/cache"}},
	{args: []string{"logits", "verify", "DIR/cache", "--format", "json", "-o", "DIR/logits.json"},
		result: "logits.json", about: "logits", found: render.TourBalance},
	tour[2],
	{args: []string{"report", "-o", "DIR/report.html", "DIR/logits.json"}},
}

func TestQuickstart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a tour's folder")
	var out, errs bytes.Buffer
	if err := quickstart(t.Context(), dir, "./mb", shortTour, &out, &errs); err != nil {
		t.Fatal(err, errs.String())
	}
	first, quoted := out.String(), strings.ReplaceAll(dir, "'", `'\''`)
	if want := "$ ./mb logits verify '" + quoted + "/cache' --format json -o '" + quoted +
		"/logits.json'\n"; !strings.Contains(errs.String(), want) {
		t.Errorf("stderr %q lacks %q", errs.String(), want)
	}
	lines := strings.Split(strings.TrimSuffix(first, "\n"), "\n")
	want := []string{"Balanced routing is 22.9 % faster (19.9 to 26.0 %): imbalance significant",
		"All 4 files are exact and as balanced as can be.",
		"Rank 2 gets 1.85 × the mean load in layer 0; both layers are uneven.", "", "page: " +
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

// A tour goes to a folder that has nothing in it, and each to one of its own.
func TestQuickstartTakesANewFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, want := range []string{"tour", "tour-2", "tour-3"} {
		if folder, err := newFolder("tour"); err != nil || folder != want {
			t.Errorf("a folder %q, %v; want %q", folder, err, want)
		}
	}
	mine := filepath.Join("tour", "report.html")
	if err := os.WriteFile(mine, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, stderr, code := invoke(t.Context(), "quickstart", "--dir", "tour")
	left, err := filepath.Glob("tour/*")
	if code != exitUsage || !strings.Contains(stderr, "want a new or empty folder") || err != nil ||
		!slices.Equal(left, []string{mine}) {
		t.Errorf("exit %d, %s: %v, %v", code, stderr, left, err)
	}
}

// What the steps find fits a line, and there are five of them.
func TestQuickstartFindings(t *testing.T) {
	dir := t.TempDir()
	args := tour[1].in(dir, "1")
	for i, a := range args {
		args[i] = strings.ReplaceAll(a, dir+"/captures", "../../testdata")
	}
	if _, stderr, code := invoke(t.Context(), args...); code != exitDone {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	result, err := source.ReadResult(filepath.Join(dir, tour[1].result))
	if err != nil {
		t.Fatal(err)
	}
	const want = "expert GEMM time of the slowest rank falls from 4.87 ms to 3.31 ms per step"
	if line := tour[1].found(result); !strings.Contains(line, want) || utf8.RuneCountInString(line) > 130 {
		t.Errorf("%q, want %q in at most 130 letters", line, want)
	}
	findings := 0
	for _, s := range tour {
		if s.found != nil {
			findings++
		}
	}
	if findings != 5 {
		t.Errorf("the tour has %d findings, want 5", findings)
	}
}

// The next commands are for the engine that is there, call this program as it was called,
// and have flags that exist.
func TestNextCommands(t *testing.T) {
	for _, here := range []string{"vllm", "trtllm-bench", "neither"} {
		text := render.TourNext("go run ./cmd/moebalance", func(program string) (string, error) {
			if program == here {
				return program, nil
			}
			return "", exec.ErrNotFound
		})
		if here == "neither" {
			here = "on a machine with vLLM"
		}
		if !strings.Contains(text, here) {
			t.Errorf("%q lacks %q", text, here)
		}
		commands := 0
		for line := range strings.SplitSeq(strings.ReplaceAll(text, " && ", "\n"), "\n") {
			rest, ok := strings.CutPrefix(strings.TrimSpace(line), "go run ./cmd/moebalance ")
			if !ok {
				continue
			}
			commands++
			rest, _, _ = strings.Cut(rest, " -- ")
			words, err := launch.Words(rest)
			if err != nil {
				t.Fatal(err)
			}
			c, args, err := rootCmd().Find(words)
			if err == nil {
				err = c.ParseFlags(args)
			}
			if err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
		if commands < 2 {
			t.Errorf("%q holds %d commands", text, commands)
		}
	}
	t.Setenv("PATH", "")
	t.Chdir("../..")
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
	err := quickstart(t.Context(), t.TempDir(), "mb", []tourStep{{args: []string{"trace", "DIR/none.sqlite"}}}, &out, &errs)
	if err == nil || !strings.Contains(err.Error(), "exit code 1") || out.Len() > 0 {
		t.Errorf("error %v, stdout %q", err, out.String())
	}
}
