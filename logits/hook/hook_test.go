package hook_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/logits/hook"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

// recorded has the counts 1 to 32 in one layer, and 32 to 1 in another.
const recorded = `{"logical_count": [[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,
31,32], [32,31,30,29,28,27,26,25,24,23,22,21,20,19,18,17,16,15,14,13,12,11,10,9,8,7,6,5,4,3,2,1]]}`

// The module's own tests run where python3, or MOEBALANCE_TEST_PYTHON, can import
// torch and safetensors.
func TestModule(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Python with torch")
	}
	python := os.Getenv("MOEBALANCE_TEST_PYTHON")
	if python == "" {
		python = "python3"
	}
	if err := exec.Command(python, "-c", "import torch, safetensors").Run(); err != nil {
		t.Skip("no python3 that imports torch and safetensors")
	}
	caches := t.TempDir()
	flat := router.Gate{Method: router.Renormalize, Shape: router.Shape{Experts: 32, TopK: 4}}
	grouped := router.Gate{Method: router.DeepSeekV3, Shape: router.Shape{Experts: 32, TopK: 4, Groups: 8,
		TopKGroups: 4}}
	single := router.Gate{Method: router.Renormalize, Shape: router.Shape{Experts: 16, TopK: 2}}
	for _, c := range []struct {
		name, model string
		gate        router.Gate
		ranks       int
		mode        router.Mode
		drawn       []string
	}{
		{"tep4", "e32k4", flat, 4, router.TEP, []string{"target-1.2", "target-1.5", "target-2", "recorded"}},
		{"dep4", "e32k4", flat, 4, router.DEP, nil},
		{"grouped", "e32k4g8", grouped, 8, router.TEP, []string{"target-1.5"}},
		{"single", "e16k2", single, 1, router.DEP, nil},
		{"tep5", "e32k4", flat, 5, router.TEP, nil}, {"dep5", "e32k4", flat, 5, router.DEP, nil}, // 7 or 6 experts a rank
	} {
		layout := require.Value(router.Contiguous(c.gate.Shape.Experts, c.ranks))
		cache, err := logits.Open(filepath.Join(caches, c.name), logits.Spec{Model: c.model, Gate: c.gate,
			Layout: layout, Mode: c.mode, DType: logits.BFloat16})
		require.NoError(t, err)
		var held [][]int32
		for rank := range c.ranks {
			held = append(held, layout.Held(rank))
		}
		for _, plan := range append([]string{"diagonal"}, c.drawn...) {
			if plan == "recorded" {
				file := filepath.Join(t.TempDir(), "counts.json")
				require.NoError(t, os.WriteFile(file, []byte(recorded), 0o600))
				plan = require.Value(cache.Plan("recorded:" + file))
			}
			if _, err := cache.Fill(t.Context(), plan, []int{logits.AnyTokens}, nil); err != nil {
				t.Fatal(err)
			}
		}
		text := require.Value(json.Marshal(held))
		require.NoError(t, os.WriteFile(filepath.Join(caches, c.name, "held.json"), text, 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(caches, "recorded.json"), []byte(recorded), 0o600))
	script := require.Value(filepath.Abs("testdata/hook_test.py"))
	test := exec.Command(python, script, caches)
	test.Dir = t.TempDir()
	if text, err := test.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}

// Engines find the entry point in a folder whose name says the distribution and its version.
func TestFiles(t *testing.T) {
	text := map[string]int{}
	for _, f := range hook.Files("1.2.3") {
		text[f.Name] = len(f.Text)
	}
	if text["moebalance_hook/__init__.py"] == 0 || text["moebalance_hook-1.2.3.dist-info/METADATA"] == 0 ||
		text["moebalance_hook-1.2.3.dist-info/entry_points.txt"] == 0 {
		t.Errorf("%v", text)
	}
}
