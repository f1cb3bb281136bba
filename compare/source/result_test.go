package source

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// What was changed after it was written, or is of a version to come, is no result to show; a
// file of a newer version is not taken for counts either.
func TestChangedResults(t *testing.T) {
	text, err := os.ReadFile("../../testdata/campaign-qwen3-ep4.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseResult("whole", text); err != nil {
		t.Error(err)
	}
	for old, c := range map[string][2]string{
		`"estimate": 0.0739`:   {`"estimate": 0.9739`, "want an estimate within its interval, 7.0 % to 7.8 %, have 97.4 %"},
		`"schema_version": 2,`: {`"schema_version": 99,`, "want at most 5, have 99"},
	} {
		_, err := ParseResult("changed", []byte(strings.Replace(string(text), old, c[0], 1)))
		if err == nil || !strings.Contains(err.Error(), c[1]) || errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %v", old, err)
		}
	}
}
