package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The loader of 'moebalance help loader' reads entries without any package of ours: three tokens of
// a layer on both ranks are level over ranks.
func TestHelpLoader(t *testing.T) {
	if err := exec.Command("python3", "-c", "import numpy").Run(); err != nil {
		t.Skip("no python3 that imports numpy")
	}
	page, _, _ := invoke(t.Context(), "help", "loader")
	_, code, _ := strings.Cut(page, "In Python:\n\n")
	dir := t.TempDir()
	ask(t, exitDone, nil, "logits", "generate", "--model", "mixtral-8x7b", "--ep", "2", "--cache",
		filepath.Join(dir, "cache"))
	code += `
both = np.concatenate([logits(sys.argv[1], rank, 3, layer=5) for rank in (0, 1)])
print((both > 0).sum(1).tolist(), (both > 0).reshape(6, 2, 4).sum((0, 2)).tolist())
`
	text, err := exec.Command("python3", "-c", code, filepath.Join(dir, "cache")).CombinedOutput()
	if want := "[2, 2, 2, 2, 2, 2] [6, 6]\n"; err != nil || string(text) != want {
		t.Errorf("%v: %q, want %q", err, text, want)
	}
}
