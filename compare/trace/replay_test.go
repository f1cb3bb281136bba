package trace

import (
	"testing"
)

// A rank that is missing may be the one that all wait for.
func TestNoReplayWithoutARank(t *testing.T) {
	trace := mustRead(t, Options{}, testdata+"/deepseek-ep4-ranks/normal.rank0.sqlite",
		testdata+"/deepseek-ep4-ranks/normal.rank1.sqlite")
	if len(trace.Replays) > 0 {
		t.Errorf("two of four ranks: %+v", trace.Replays)
	}
}
