package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/compare/source"
)

// shortTour prepares, finds, and draws, in less than a second.
var shortTour = []tourStep{
	{args: []string{"logits", "generate", "--model", "gpt-oss-120b", "--ep", "2", "--tokens", "1,8", "--cache", "DIR/cache"}},
	{args: []string{"logits", "verify", "DIR/cache", "--format", "json", "-o", "DIR/logits.json"}, result: "logits.json", about: "logits", found: render.TourBalance},
	tour[3],
	{args: []string{"report", "-o", "DIR/report.html", "DIR/logits.json"}},
}

func TestQuickstart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a tour's folder")
	var first string
	for round := range 2 { // the second one replaces what the first one made
		var out, errs bytes.Buffer
		if err := quickstart(t.Context(), dir, shortTour, &out, &errs); err != nil {
			t.Fatal(err, errs.String())
		}
		if first == "" {
			first = out.String()
		}
		if out.String() != first {
			t.Errorf("the second tour printed %q, the first %q", out.String(), first)
		}
		quoted := strings.ReplaceAll(dir, "'", `'\''`)
		if want := "$ moebalance logits verify '" + quoted + "/cache' --format json -o '" + quoted + "/logits.json'\n"; !strings.Contains(errs.String(), want) {
			t.Errorf("stderr %q lacks %q", errs.String(), want)
		}
		stale, notes := filepath.Join(dir, "captures", "stale"), filepath.Join(dir, "notes")
		if _, err := os.Stat(stale); err == nil {
			t.Error("the captures of the first tour were not replaced")
		}
		if _, err := os.Stat(notes); err != nil && round > 0 {
			t.Errorf("the second tour removed a file that is not its own: %v", err)
		}
		for _, path := range []string{stale, notes} {
			if err := os.WriteFile(path, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	lines := strings.Split(strings.TrimSuffix(first, "\n"), "\n")
	want := []string{"2 of 2 batch sizes of gpt-oss-120b", "most uneven is layer 1, where expert compute of rank 1 takes 51.5 % longer", "report: " + filepath.Join(dir, "report.html")}
	if len(lines) != len(want) {
		t.Fatalf("stdout is %q, want %d lines", first, len(want))
	}
	for i, line := range lines {
		if !strings.Contains(line, want[i]) {
			t.Errorf("line %q, want %q in it", line, want[i])
		}
	}
	if page, err := os.ReadFile(filepath.Join(dir, "report.html")); err != nil || !bytes.HasPrefix(page, []byte("<!DOCTYPE html>")) {
		t.Errorf("report.html: %v, %.20q", err, page)
	}
}

// What the steps find fits a line, whatever the result.
func TestQuickstartFindings(t *testing.T) {
	dir := t.TempDir()
	for result, source := range map[string][]string{
		"gptoss.json":   tour[4].in(dir),
		"deepseek.json": tour[5].in(dir),
	} {
		args := source
		for i, a := range args {
			args[i] = strings.ReplaceAll(a, dir+"/captures", "../../testdata")
		}
		if _, stderr, code := invoke(t.Context(), args...); code != exitDone {
			t.Fatalf("%s: exit %d, %s", result, code, stderr)
		}
	}
	campaign, err := os.ReadFile("../../testdata/campaign-deepseek-ep4.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bench.json"), campaign, 0o644); err != nil {
		t.Fatal(err)
	}
	findings := 0
	for _, s := range tour {
		if s.found == nil {
			continue
		}
		findings++
		want, ok := map[string]string{
			"gptoss.json":   "expert time of the slowest rank 1.81 ms to 1.22 ms per step (−32.5 %)",
			"deepseek.json": "expert GEMM time of the slowest rank 4.87 ms to 3.31 ms per step (−32.0 %)",
			"bench.json":    "throughput by +22.9 % (+19.9 % to +26.0 %, 95.0 % confidence, 6 pairs): imbalance significant",
		}[s.result]
		if !ok {
			continue // in TestQuickstart
		}
		result, err := source.ReadResult(filepath.Join(dir, s.result))
		if err != nil {
			t.Fatal(err)
		}
		if line := s.found(result); !strings.Contains(line, want) || utf8.RuneCountInString(line) > 130 {
			t.Errorf("%s: %q, want %q in at most 130 letters", s.result, line, want)
		}
	}
	if findings != 5 {
		t.Errorf("the tour has %d findings, want 5", findings)
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
	err := quickstart(t.Context(), dir, []tourStep{{args: []string{"trace", "DIR/none.sqlite"}}}, &out, &errs)
	if err == nil || !strings.Contains(err.Error(), "exit code 1") || out.Len() > 0 {
		t.Errorf("error %v, stdout %q", err, out.String())
	}
}
