package diff

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/testdata/require"
)

// captured reads one arm of a recorded capture.
func captured(t *testing.T, capture, arm string) *trace.Trace {
	t.Helper()
	return matched(t, filepath.Join(capture, arm+".*"))
}

// matched reads the captures of testdata that a pattern names.
func matched(t *testing.T, pattern string) *trace.Trace {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "testdata", pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no exports of %s: %v", pattern, err)
	}
	return require.Value(trace.Read(context.Background(), paths, trace.Options{Threshold: 0.1}))
}
