package main

import (
	"os"
	"path/filepath"
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
