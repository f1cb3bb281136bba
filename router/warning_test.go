package router

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
)

// A warning read back is the one written, lists and undefined numbers included.
func TestWarningsReadBack(t *testing.T) {
	type word string
	w := Warn("code", "file", "n", 3, "words", []word{"a", "b"}, "shares", []Number{0.5, Undefined()}, "none", Undefined())
	text := require.Value(json.Marshal(w))
	var back Warning
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, w) {
		t.Errorf("%s: %v", text, err)
	}
	if list, ok := w.Args["words"].([]any); !ok || len(list) != 2 || list[1] != "b" {
		t.Errorf("%#v", w.Args)
	}
}
