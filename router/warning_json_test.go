package router

import (
	"encoding/json"
	"reflect"
	"testing"
)

// A warning read back is the one written, and one of an older result its words.
func TestWarningJSON(t *testing.T) {
	for text, want := range map[string]Warning{
		`"too few tokens"`: {Text: "too few tokens"},
		`""`:               {},
		`{"code": "no_time", "args": {"why": "few", "groups": 2}}`: Warn("no_time", "", "why", "few", "groups", 2),
	} {
		have := Warning{Code: "old"}
		if err := json.Unmarshal([]byte(text), &have); err != nil || !reflect.DeepEqual(have, want) {
			t.Errorf("%s: %+v, want %+v, %v", text, have, want, err)
		}
	}
}
