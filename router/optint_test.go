package router

import (
	"encoding/json"
	"testing"
)

// Undefined is null in both directions, and every other number keeps every digit.
func TestOptIntInJSON(t *testing.T) {
	for want, w := range map[string]OptInt{"null": NoID, "0": 0, "7": 7, "9007199254740993": 1<<53 + 1} {
		text, err := json.Marshal(w)
		if err != nil || string(text) != want {
			t.Errorf("%d: want %s, have %s, %v", int64(w), want, text, err)
		}
		read := OptInt(3)
		if err := json.Unmarshal(text, &read); err != nil || read != w || read.Defined() != (want != "null") {
			t.Errorf("%s is read as %d (defined %t), %v", text, int64(read), read.Defined(), err)
		}
	}
	for _, text := range []string{`"3"`, `1.5`, `1e30`} {
		if err := json.Unmarshal([]byte(text), new(OptInt)); err == nil {
			t.Errorf("%s was read", text)
		}
	}
}
