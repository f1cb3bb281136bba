package source

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
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
	first := strings.NewReplacer(`"schema_version": 2`, `"schema_version": 1`, `"balance": "measured",`, "",
		`"grade": "measured"`, `"proved": true`).Replace(string(text)) // version 1 had no grades
	if item, err := ParseResult("first", []byte(first)); err != nil || item.Campaign.Balance != gain.Measured {
		t.Errorf("version 1: balance %s, error %v; want it measured", item.Campaign.Balance, err)
	}
	for text, lacks := range map[string]string{
		`{"schema_version":4,"kind":"bench"}`:                                 "verdict",
		`{"schema_version":4,"kind":"bench","verdict":"below the threshold"}`: "gain",
	} {
		if _, err := ParseResult("planted", []byte(text)); err == nil || !strings.Contains(err.Error(), lacks) {
			t.Errorf("%s: %v, want that it lacks %s", text, err, lacks)
		}
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
