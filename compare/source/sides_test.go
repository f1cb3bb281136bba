package source

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
)

// put writes a file and returns its path.
func put(t *testing.T, path, text string) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// get is the text of a file.
func get(path string) string {
	text := require.Value(os.ReadFile(path))
	return string(text)
}

// A folder of both arms, by the environment that exports record, whatever their names; by
// names beside a folder of counts that is named after an arm, too.
func TestSidesOfOneFolder(t *testing.T) {
	const captures = "../../testdata/deepseek-ep4-ranks"
	unnamed := t.TempDir()
	for name, as := range map[string]string{"normal.rank0.sqlite": "a.sqlite", "perfect.rank0.sqlite": "b.sqlite"} {
		put(t, filepath.Join(unnamed, as), get(filepath.Join(captures, name)))
	}
	put(t, filepath.Join(unnamed, "host_646.async_llm.17.pt.trace.json"), `{"traceEvents": []}`) // of vLLM's server
	for folder, want := range map[string]int{unnamed: 1, captures: 4} {
		kind, sides, err := ReadArms([]string{folder}, nil)
		if err != nil || kind != Captures {
			t.Fatalf("%s: %v", folder, err)
		}
		for i, side := range sides {
			if len(side.Paths) != want {
				t.Errorf("%s, side %d: %+v", folder, i, side)
			}
		}
	}
	if _, sides, _ := ReadArms([]string{unnamed}, nil); !strings.HasSuffix(sides[1].Paths[0], "b.sqlite") {
		t.Error("the perfect side is not the one that b.sqlite records")
	}
}

// Captures of both arms are no run, a result of bench is no side, and a folder whose name holds a bracket is listed,
// not taken for a pattern.
func TestArgumentsThatDoNotFit(t *testing.T) {
	const captures = "../../testdata/deepseek-ep4-ranks/"
	odd := filepath.Join(t.TempDir(), "run[1]")
	require.NoError(t, os.MkdirAll(filepath.Join(odd, "rank0"), 0o700))
	_, arms := RunCaptures([]string{captures + "normal.rank0.sqlite", captures + "perfect.rank1.sqlite"}, nil)
	_, folders := Classify([]string{odd}, nil)
	_, _, results := ReadArms([]string{"../../testdata/campaign-qwen3-ep4.json",
		"../../testdata/campaign-deepseek-ep4.json"}, nil)
	for want, err := range map[string]error{"of both arms by their names": arms, "want files of a run in this folder, have": folders,
		"campaign-qwen3-ep4.json is a campaign, not a trace: read it with: moebalance compare ": results} {
		if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, ErrNotComparable) != (err == arms) {
			t.Errorf("have %v, want %q", err, want)
		}
	}
	if paths, err := RunCaptures([]string{captures + "normal.*"}, nil); err != nil || len(paths) != 4 {
		t.Error(paths, err)
	}
}

// A run may have a folder for each node in the folder of an arm; links in circles end.
func TestFoldersOfNodes(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"normal/normal-node0", "perfect/perfect-node0"} {
		path := filepath.Join(folder, name)
		require.NoError(t, errors.Join(os.MkdirAll(path, 0o700), os.Symlink(folder, filepath.Join(path, "normal-again")),
			os.WriteFile(filepath.Join(path, "r.json"), []byte("{}"), 0o600)))
	}
	_, sides, err := ReadArms([]string{folder}, nil)
	if err != nil || len(sides[0].Paths) == 0 || len(sides[1].Paths) == 0 {
		t.Errorf("%+v, %v", sides, err)
	}
}
