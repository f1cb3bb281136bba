package source

import (
	"path/filepath"
	"slices"
	"testing"
)

// A pattern names the files and no others; where none does, the files are named.
func TestPatternMatchesTheFilesAlone(t *testing.T) {
	dir := t.TempDir()
	in := func(names ...string) []string {
		for i, name := range names {
			names[i] = filepath.Join(dir, name)
			put(t, names[i], "")
		}
		return names
	}
	ranks := in("a.rank1.json.gz", "a.rank10.json.gz", "a.rank2.json.gz")
	others := in("b.x.json", "b.y.json", "b.z.json")
	for _, c := range []struct{ files, want []string }{
		{ranks, []string{filepath.Join(dir, "a.rank*.json.gz")}},
		{others[:2], others[:2]}, // b.z.json would match
		{others[:1], others[:1]},
		{in("c1", "c"), []string{filepath.Join(dir, "c*")}},
	} {
		if got := Pattern(c.files); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.files, got, c.want)
		}
	}
}
