package render

import (
	"testing"

	"github.com/moebalance/moebalance/compare/source"
)

// The result of a verb says what to do next with the files that it was made of.
func TestNextOfAResult(t *testing.T) {
	text := `{"schema_version": 1, "kind": "counts", "records": [{}],
		"answer": {"next": [{"text": "Do.", "command": "moebalance do it.json"}]}}`
	in, err := source.ParseResult("counts.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if next := Of(in).Answer.Next; len(next) != 1 || next[0].Command != "moebalance do it.json" {
		t.Errorf("%+v", next)
	}
}
