package source

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/place"
)

// A placement has no counts to learn from, and a plan is not judged by what it was learned from.
func TestPlacingRefuses(t *testing.T) {
	running := filepath.Join(t.TempDir(), "running.json")
	if err := os.WriteFile(running, []byte(`{"physical_to_logical_map": [[3, 1, 2, 0]]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p := Placing{Learn: []string{running}, Options: place.Options{Ranks: []int{2}}}
	if _, err := p.Judged(context.Background()); err == nil || !strings.Contains(err.Error(), "is a placement") {
		t.Error(err)
	}
	if err := os.WriteFile(running, []byte(`{"logical_count": [[5, 3, 1, 1]]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Judge = p.Learn
	if _, err := p.Judged(context.Background()); !errors.Is(err, ErrUsage) {
		t.Error(err)
	}
}
