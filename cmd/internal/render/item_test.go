package render

import (
	"testing"

	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/testdata/require"
)

// The result of a verb says what to do next with the files that it was made of.
func TestNextOfAResult(t *testing.T) {
	text := `{"schema_version": 1, "kind": "counts", "records": [{}],
		"answer": {"next": [{"text": "Do.", "command": "moebalance do it.json"}]}}`
	in := require.Value(source.ParseResult("counts.json", []byte(text)))
	if next := Of(in).Answer.Next; len(next) != 1 || next[0].Command != "moebalance do it.json" {
		t.Errorf("%+v", next)
	}
}
