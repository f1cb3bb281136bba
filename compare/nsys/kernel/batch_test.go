package kernel

import "testing"

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
