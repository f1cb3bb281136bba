package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// countingKeys are the keys of numbers that are never below 0.
var countingKeys = []string{"layer", "step", "rank", "expert", "worst", "worst_layer", "worst_rank", "requests",
	"context_tokens", "generated_tokens"}

// walk goes through a JSON value and calls see with every member.
func walk(value any, see func(key string, value any)) {
	switch v := value.(type) {
	case []any:
		for _, e := range v {
			walk(e, see)
		}
	case map[string]any:
		for key, e := range v {
			see(key, e)
			walk(e, see)
		}
	}
}

// A layer, step, rank or count that there is none of is null, never a number that
// stands for none.
func TestNoneIsNull(t *testing.T) {
	t.Chdir("../..")
	const ranks = "testdata/deepseek-ep4-ranks/"
	log, other := "testdata/outputs/print-iter-log-1.txt", filepath.Join(t.TempDir(), "log.txt")
	text, err := os.ReadFile(log)
	if err = errors.Join(err, os.WriteFile(other, text, 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		nulls string // keys with a null somewhere
		args  []string
	}{
		{"layer step", []string{"trace", ranks + "normal.rank0.sqlite", ranks + "normal.rank1.sqlite"}},
		{"layer step", []string{"trace", "testdata/torch/rank0.pt.trace.json",
			"testdata/torch/rank1.pt.trace.json.gz"}},
		{"layer", []string{"compare", ranks + "normal.rank?.sqlite", ranks + "perfect.rank?.sqlite"}},
		{"rank", []string{"compare", "--trust-arms", log, other}},
		{"step", []string{"counts", "testdata/counts/engine.log"}},
	} {
		stdout, stderr, code := invoke(t.Context(), append(c.args, "--format", "json")...)
		var result any
		if err := json.Unmarshal([]byte(stdout), &result); err != nil {
			t.Fatalf("%v: exit %d, %v, %s", c.args, code, err, stderr)
		}
		var nulls []string
		walk(result, func(key string, value any) {
			if !slices.Contains(countingKeys, key) {
				return
			}
			if n, ok := value.(float64); ok && n < 0 {
				t.Errorf("%v: %q is %v", c.args, key, n)
			}
			if value == nil && !slices.Contains(nulls, key) {
				nulls = append(nulls, key)
			}
		})
		if slices.Sort(nulls); strings.Join(nulls, " ") != c.nulls {
			t.Errorf("%v: null are %v, want %s", c.args, nulls, c.nulls)
		}
	}
}

// The ending of the output's name chooses the format, and --json is --format json.
func TestFormatByEnding(t *testing.T) {
	dir := t.TempDir()
	for ending, begins := range map[string]string{".json": "{\n  \"schema_version\"", ".csv": "name,experts,", ".md": "**1 model**", ".txt": "1 model"} {
		path := filepath.Join(dir, "x"+ending)
		if _, errs, code := invoke(t.Context(), "models", "gpt-oss-20b", "-o", path); code != exitDone {
			t.Errorf("%s: exit %d, %s", ending, code, errs)
		}
		if text, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(text), begins) {
			t.Errorf("%s: %.40q, %v", ending, text, err)
		}
	}
	if out, _, _ := invoke(t.Context(), "models", "--json"); !strings.HasPrefix(out, "{") {
		t.Errorf("--json: %.40q", out)
	}
}
