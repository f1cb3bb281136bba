package trace

import (
	"encoding/json"
	"strings"
	"testing"
)

// What is not known is null in JSON, and read back as it was.
func TestUnknownIsNull(t *testing.T) {
	type both struct {
		Export    Export    `json:"export"`
		Structure Structure `json:"structure"`
	}
	for _, c := range []struct {
		value both
		null  int
	}{{both{}, 3}, {both{Export{CapturedNS: 7}, Structure{Layers: 2, Steps: 3}}, 0}} {
		text, err := json.Marshal(c.value)
		if err != nil {
			t.Fatal(err)
		}
		nulls := 0
		for _, key := range []string{"captured_ns", "layers", "steps"} {
			nulls += strings.Count(string(text), `"`+key+`":null`)
		}
		var back both
		if err := json.Unmarshal(text, &back); err != nil || nulls != c.null ||
			back.Export.CapturedNS != c.value.Export.CapturedNS || back.Structure.Layers != c.value.Structure.Layers {
			t.Errorf("%s: read back as %+v (%v)", text, back, err)
		}
	}
}
