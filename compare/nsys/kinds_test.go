package nsys

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestBatchOf(t *testing.T) {
	for name, want := range map[string]Batch{
		"execute_context_9(8172)_generation_20(20)":          {true, true, 8192},
		"execute_context_0(0)_generation_4(4)":               {true, false, 4},
		"step[DECODE bs=32]":                                 {true, false, 32},
		"step[EXTEND bs=15 toks=15360]":                      {true, true, 15360},
		"[Executor] _forward_step 7: 0 ctx reqs, 3 gen reqs": {true, false, 0},
		"ProfilerStep#3":                                     {},
	} {
		if have := BatchOf(name); have != want {
			t.Errorf("%s: have %+v, want %+v", name, have, want)
		}
	}
}

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
		if err := json.Unmarshal(text, &back); err != nil || nulls != c.null || back.Export.CapturedNS != c.value.Export.CapturedNS || back.Structure.Layers != c.value.Structure.Layers {
			t.Errorf("%s: read back as %+v (%v)", text, back, err)
		}
	}
}
