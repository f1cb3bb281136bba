package source

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/place"
)

// DIR/*.json names the placement that runs as well, which has no counts to learn from; a record
// that has counts and a map is both.
func TestPlacementAmongItsCounts(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for name, text := range map[string]string{
		"a.json": `{"logical_count": [[500, 300, 100, 100]]}`, "b.json": `{"logical_count": [[100, 300, 500, 100]]}`,
		"both.json":    `{"logical_count": [[100, 300, 100, 500]], "physical_to_logical_map": [[0, 2, 1, 3]]}`,
		"running.json": `{"physical_to_logical_map": [[3, 1, 2, 0]]}`,
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for from, learned := range map[string]int{"running.json": 3, "both.json": 3} {
		learn := paths
		if from == "both.json" {
			learn = paths[:3]
		}
		p := Placing{Learn: learn, From: filepath.Join(dir, from), Options: place.Options{Ranks: []int{2}}}
		if records, _, err := p.read(); err != nil || len(records) != learned {
			t.Errorf("%s: %d records, %v", from, len(records), err)
		}
	}
	p := Placing{Learn: paths, Options: place.Options{Ranks: []int{2}}}
	if _, err := p.Judged(context.Background()); err == nil || !strings.Contains(err.Error(), "is a placement") {
		t.Error(err)
	}
	p = Placing{Learn: paths, Judge: paths[:1]}
	if _, err := p.Judged(context.Background()); !errors.Is(err, ErrUsage) {
		t.Error(err)
	}
}
