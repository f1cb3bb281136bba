package hook_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/logits/hook"
	"github.com/moebalance/moebalance/router"
)

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
	}{
		{"tep4", "e32k4", flat, 4, router.TEP}, {"dep4", "e32k4", flat, 4, router.DEP},
		{"grouped", "e32k4g8", grouped, 8, router.TEP}, {"single", "e16k2", single, 1, router.DEP},
		{"tep5", "e32k4", flat, 5, router.TEP}, {"dep5", "e32k4", flat, 5, router.DEP}, // ranks of 7 and of 6 experts
	} {
		layout, err := router.Contiguous(c.gate.Shape.Experts, c.ranks)
		if err != nil {
			t.Fatal(err)
		}
		cache, err := logits.Open(filepath.Join(caches, c.name), logits.Spec{Model: c.model, Gate: c.gate,
			Layout: layout, Mode: c.mode, DType: logits.BFloat16})
		if err != nil {
			t.Fatal(err)
		}
		var held [][]int32
		for rank := range c.ranks {
			if _, err := cache.Get(rank, logits.AnyTokens); err != nil {
				t.Fatal(err)
			}
			held = append(held, layout.Held(rank))
		}
		text, err := json.Marshal(held)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(caches, c.name, "held.json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script, err := filepath.Abs("testdata/hook_test.py")
	if err != nil {
		t.Fatal(err)
	}
	test := exec.Command(python, script, caches)
	test.Dir = t.TempDir()
	if text, err := test.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}

// Engines find the entry point in a folder whose name says the distribution and its version.
func TestFiles(t *testing.T) {
	var names []string
	for _, f := range hook.Files("1.2.3") {
		names = append(names, f.Name)
		if len(f.Text) == 0 {
			t.Errorf("%s is empty", f.Name)
		}
	}
	for _, want := range []string{"moebalance_hook/__init__.py", "moebalance_hook/hook.py",
		"moebalance_hook-1.2.3.dist-info/METADATA", "moebalance_hook-1.2.3.dist-info/entry_points.txt"} {
		if !slices.Contains(names, want) {
			t.Errorf("no %s in %s", want, names)
		}
	}
}
