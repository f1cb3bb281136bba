package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/plots/page"
	"github.com/moebalance/moebalance/testdata/require"
)

// A result of which any one key is null or empty, down to the first row of a list, is refused or shown; it
// never panics.
func TestReportOfResultsWithHoles(t *testing.T) {
	t.Chdir("../..")
	const field, loop = "testdata/field/results/vllm-qwen3-", "testdata/gptoss-ep4-loop/"
	cache := filepath.Join(t.TempDir(), "cache")
	ask(t, exitDone, nil, "logits", "generate", "--model", "gpt-oss-20b", "--ep", "2", "--cache", cache)
	if _, errs, code := invoke(t.Context(), "report", cache); code != exitUsage || !strings.Contains(errs, "logits verify") {
		t.Errorf("report of a cache: exit %d, %s", code, errs)
	}
	for _, args := range [][]string{
		{"trace", "testdata/torch/grouped-normal.rank0.json.gz", "testdata/torch/grouped-normal.rank1.json.gz"},
		{"compare", loop + "normal.sqlite", loop + "perfect.sqlite"},
		{"counts", "--ep", "2", field + "normal.counts.json"},
		{"place", "--ep", "2", "--judge", field + "normal.decode.counts.json", field + "normal.counts.json"},
		{"logits", "verify", cache},
		{"testdata/field/results/vllm-four-h100/campaign.json"},
		{"testdata/field/results/vllm-two-h200-quantized/mxfp4-marlin.campaign.json"},
		{"testdata/campaign-deepseek-ep4.json"},
	} {
		text, err := os.ReadFile(args[0])
		if len(args) > 1 {
			stdout, stderr, code := invoke(t.Context(), append(args, "--format", "json")...)
			if text, err = []byte(stdout), nil; code != exitDone {
				t.Fatalf("%v: exit %d, %s", args, code, stderr)
			}
		}
		var result map[string]any
		err = errors.Join(err, json.Unmarshal(text, &result))
		require.NoError(t, err)
		holes(result, 3, func(where string) {
			text := require.Value(json.Marshal(result))
			defer func() {
				if r := recover(); r != nil {
					t.Errorf("%v: %s: %v", args[0], where, r)
				}
			}()
			in, err := source.ParseResult("holed", text)
			if err != nil {
				return
			}
			d := render.Of(in)
			_ = page.New("", nil, page.Input{Item: in, Notes: d.Notes, Tables: d.Tables})
		})
	}
}

// holes puts null and an empty list into each member of a JSON object, and into the first of a list, in turn, down to a depth.
func holes(value any, depth int, see func(where string)) {
	each := func(key string, old any, set func(any)) {
		for _, hole := range []any{nil, []any{}} {
			set(hole)
			see(fmt.Sprintf("%s is %v", key, hole))
		}
		if set(old); depth > 1 {
			holes(old, depth-1, func(where string) { see(key + "." + where) })
		}
	}
	switch v := value.(type) {
	case map[string]any:
		for key, old := range v {
			each(key, old, func(x any) { v[key] = x })
		}
	case []any:
		for i, old := range v[:min(1, len(v))] {
			each(fmt.Sprint(i), old, func(x any) { v[i] = x })
		}
	}
}
