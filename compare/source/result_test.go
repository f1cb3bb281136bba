package source

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
)

// What was changed after it was written, or is of a version to come, is no result to show; a
// file of a newer version is not taken for counts either, nor is one that may not be read taken for anything.
func TestChangedResults(t *testing.T) {
	const path = "../../testdata/campaign-qwen3-ep4.json"
	text, shut := get(path), Meant(path, fs.ErrPermission, Counts)
	if _, err := ParseResult("whole", []byte(text)); err != nil || shut != fs.ErrPermission {
		t.Error(err, shut)
	}
	const first = `{"schema_version":1,"kind":"bench","gain":{"estimate":0.07,"low":0.06,"high":0.08,"n":6},
		"verdict":"not significant","proof":[{"arm":"normal","rank":0,"proved":true,"evidence":"worst layer 1.8"},
		{"arm":"perfect","rank":0,"proved":true,"evidence":"worst layer 1.0"}],"checks":[{"subjects":["tokens 8"]}]}`
	if item, err := ParseResult("first", []byte(first)); err != nil || item.Campaign.Balance != gain.Measured ||
		item.Campaign.Main()[0].Verdict != gain.NotSignificant || item.Campaign.Checks[0].Subject != "tokens 8" {
		t.Errorf("version 1: %+v, error %v; want it measured and below", item.Campaign, err)
	}
	for text, lacks := range map[string]string{
		`{"schema_version":1,"kind":"bench"}`:                                 "verdict",
		`{"schema_version":1,"kind":"bench","verdict":"below the threshold"}`: "gain",
		`{"schema_version":4,"kind":"bench","verdict":"below the threshold"}`: "schema_version 4 is not read: write it again",
		`{"schema_version":1,"kind":"trace"}`:                                 "exports",
		`{"schema_version":1,"kind":"counts"}`:                                "records",
		`{"schema_version":1,"kind":"compare"}`:                               "verdict",
		`{"schema_version":1,"kind":"place"}`:                                 "placements",
		`{"schema_version":1,"kind":"logits verify"}`:                         "entries",
	} {
		if _, err := ParseResult("planted", []byte(text)); err == nil || !strings.Contains(err.Error(), lacks) {
			t.Errorf("%s: %v, want that it lacks %s", text, err, lacks)
		}
	}
	for old, c := range map[string][2]string{
		`"estimate": 0.0739`:   {`"estimate": 0.9739`, "changed: gain: want"},
		`"schema_version": 5,`: {`"schema_version": 99,`, "want at most 5, have 99"},
	} {
		_, err := ParseResult("changed", []byte(strings.ReplaceAll(text, old, c[0])))
		if err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v", old, err)
		}
	}
}
