package ranges

import "testing"

func TestBatchOf(t *testing.T) {
	for name, want := range map[string]Batch{
		"execute_context_9(8172)_generation_20(20)": {Named: true, Prefill: true, Tokens: 8192},
		"execute_context_0(0)_generation_4(4)":      {Named: true, Tokens: 4},
		"execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(sq37sk34489sqsq37sqsk34489)": {
			Named: true, Prefill: true, Tokens: 8192}, // of traces in AMD-AGI/TraceLens
		"execute_context_1(888_788544)_generation_0(0)":               {Named: true, Prefill: true, Tokens: 888},
		"step[DECODE bs=32]":                                          {Named: true, Tokens: 32},
		"step[EXTEND bs=15 toks=15360]":                               {Named: true, Prefill: true, Tokens: 15360},
		"[Executor] _forward_step 7: 0 ctx reqs, 3 gen reqs":          {Named: true, Requests: 3},
		"ProfilerStep#3":                                              {},
		"moebalance step=12 tokens=8192 sequence=3 arm=perfect":       {Tokens: 8192, Arm: "perfect"},
		"moebalance step=1 tokens=0 sequence=0 arm=build 2, arm=x":    {Arm: "build 2, arm=x"},
		"moebalance step=12 tokens=64 sequence=3 arm=perfect expired": {Tokens: 64},
		"moebalance step=7 tokens=30 sequence=1 arm=normal > execute_context_2(28)_generation_2(2)": {
			Named: true, Prefill: true, Tokens: 30, Arm: "normal"},
	} {
		if have := BatchOf(name); have != want {
			t.Errorf("%s: have %+v, want %+v", name, have, want)
		}
	}
}
