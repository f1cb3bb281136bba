package ranges

import "testing"

func TestBatchOf(t *testing.T) {
	for name, want := range map[string]Batch{
		"execute_context_9(8172)_generation_20(20)": {Named: true, Prefill: true, Tokens: 8192},
		"execute_context_0(0)_generation_4(4)":      {Named: true, Tokens: 4},
		"execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(sq37sk34489sqsq37sqsk34489)": {
			Named: true, Prefill: true, Tokens: 8192}, // of traces in AMD-AGI/TraceLens
		"execute_context_1(888_788544)_generation_0(0)": {Named: true, Prefill: true, Tokens: 888},
		"step[DECODE bs=32]":                            {Named: true, Tokens: 32},
		"step[EXTEND bs=15 toks=15360]":                 {Named: true, Prefill: true, Tokens: 15360},
		// of SGLang pull requests 23419 and 24911, and ROCm/ATOM 477
		"step[decode bs=5]":                              {Named: true, Tokens: 5},
		"step[prefill bs=2 toks=77]":                     {Named: true, Prefill: true, Tokens: 77},
		"step[mixed bs=9 ext=70 dec=8]":                  {Named: true, Prefill: true, Tokens: 78},
		"step[idle]":                                     {},
		"step[TARGET_VERIFY bs=4]":                       {},
		"step[DECODE bs=64 g_sqsq=64 g_sqsk=100 g_sk=3]": {Named: true, Tokens: 64},
		"step[EXTEND bs=1 toks=1025 c_sqsq=1050625 c_sqsk=1050625 c_sk=1025]": {Named: true, Prefill: true, Tokens: 1025},
		"step[MIXED bs=66 c=2 g=64 c_sq=2048 c_sk=2048 c_sqsq=2097152 c_sqsk=2097152 g_sq=64 g_sk=65600 g_sqsq=64 " +
			"g_sqsk=65600]": {Named: true, Prefill: true, Tokens: 2112},
		"prefill[bs=1 tok=1024 ctx=1024 sqsq=1048576 sqsk=1048576 sk=1024]": {Named: true, Prefill: true, Tokens: 1024},
		"decode[bs=64 tok=64 d=64 sqsq=64 sqsk=65600 sk=65600]":             {Named: true, Tokens: 64},
		"[Executor] _forward_step 7: 0 ctx reqs, 3 gen reqs":                {Named: true},
		"[Executor] _forward_step: 2 ctx reqs, 3 gen reqs":                  {Named: true, Prefill: true},
		"[Executor] _forward_step 6: 1 ctx reqs, 7 ctx tokens, 2 gen reqs": {
			Named: true, Prefill: true},
		"ProfilerStep#3": {},
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
