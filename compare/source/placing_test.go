package source

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/place"
)

// A placement has no counts to learn from, and a plan is not judged by what it was learned from.
func TestPlacingRefuses(t *testing.T) {
	running := put(t, filepath.Join(t.TempDir(), "running.json"), `{"physical_to_logical_map": [[3, 1, 2, 0]]}`)
	p := Placing{Learn: []string{running}, Options: place.Options{Ranks: []int{2}}}
	if _, err := p.Judged(context.Background()); err == nil || !strings.Contains(err.Error(), "is a placement") {
		t.Error(err)
	}
	put(t, running, `{"logical_count": [[5, 3, 1, 1]]}`)
	p.Judge = p.Learn
	if _, err := p.Judged(context.Background()); !errors.Is(err, ErrUsage) {
		t.Error(err)
	}
}
