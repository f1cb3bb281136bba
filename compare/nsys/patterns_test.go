package nsys

import "testing"

func TestBuiltInPatterns(t *testing.T) {
	patterns, err := NewPatterns()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]label{
		"[Executor] _forward_step 12: 3 ctx reqs, 5 gen reqs": {step: 12, layer: None, expert: None, phase: ""},
		"layer_wise_benchmarks layer_idx 5":                   {step: None, layer: 5, expert: None, phase: ""},
		"b=8 s=1 past=128 EP4":                                {step: unnumbered, layer: None, expert: None, phase: ""},
		"layer_wise_benchmarks ignore":                        {step: None, layer: None, expert: None, phase: phaseIgnored},
		"layer 0 router":                                      {step: None, layer: 0, expert: None, phase: PhaseRouter},
		"layer 11 dispatch":                                   {step: None, layer: 11, expert: None, phase: PhaseDispatch},
		"layer 2 experts":                                     {step: None, layer: 2, expert: None, phase: PhaseExperts},
		"layer 2 expert 31":                                   {step: None, layer: 2, expert: 31, phase: PhaseExperts},
		"layer 2 combine":                                     {step: None, layer: 2, expert: None, phase: PhaseCombine},
		"model.layers.3.mlp.experts":                          {step: None, layer: 3, expert: None, phase: PhaseExperts},
		"model.layers.3.mlp.experts.17":                       {step: None, layer: 3, expert: 17, phase: PhaseExperts},
		"model.layers.10.self_attn":                           {step: None, layer: 10, expert: None, phase: PhaseAttention},
		"model.layers.10.self_attn.qkv_proj":                  {step: None, layer: 10, expert: None, phase: PhaseAttention},
		"model.layers.7.mlp.gate":                             {step: None, layer: 7, expert: None, phase: PhaseRouter},
		"model.layers.7.mlp":                                  {step: None, layer: 7, expert: None, phase: ""},
		"{'Module': 'model.layers.4.mlp.experts', 'TrainableParams': {}}": {step: None, layer: 4, expert: None, phase: PhaseExperts},
		"DeepseekV3Gate":  {step: None, layer: None, expert: None, phase: PhaseRouter},
		"MLA":             {step: None, layer: None, expert: None, phase: PhaseAttention},
		"FusedMoE":        {step: None, layer: None, expert: None, phase: PhaseExperts},
		"execute_model":   {step: unnumbered, layer: None, expert: None, phase: ""},
		"ProfilerStep#14": {step: 14, layer: None, expert: None, phase: ""},
		"step 3":          {step: 3, layer: None, expert: None, phase: ""},
		"model.layers.7.mlp.shared_experts.gate_proj": {step: None, layer: 7, expert: None, phase: PhaseOther},
		"CutlassFusedMoE":                          {step: None, layer: None, expert: None, phase: PhaseExperts},
		"execute_context_3(384)_generation_16(16)": {step: unnumbered, layer: None, expert: None, phase: ""},
		"model.layers.3.mlp.shared_expert_gate":    {step: None, layer: 3, expert: None, phase: PhaseOther}, // not the router
		"MoE":                                      {step: None, layer: None, expert: None, phase: PhaseExperts},
		"GatedMLP":                                 {step: None, layer: None, expert: None, phase: PhaseOther},
		"KimiK3MoEGate":                            {step: None, layer: None, expert: None, phase: PhaseRouter},
		"nn.Module: Qwen3MoeDecoderLayer_5":        {step: None, layer: 5, expert: None, phase: ""},
		"nn.Module: Qwen3MoeAttention_5":           {step: None, layer: None, expert: None, phase: PhaseAttention},
		"nn.Module: FusedMoE_12":                   {step: None, layer: None, expert: None, phase: PhaseExperts},
		"nn.Module: Qwen3MoeTopKRouter_3":          {step: None, layer: None, expert: None, phase: PhaseRouter},
		"Layer 3":                                  {step: None, layer: 3, expert: None, phase: ""},
		"layer=3":                                  {step: None, layer: 3, expert: None, phase: ""},
		"Step 3":                                   {step: 3, layer: None, expert: None, phase: ""},
		// not ours
		`layer_wise_benchmarks args {"warmup_times": 20}`: {step: None, layer: None, expert: None, phase: ""},
		"layer_wise_benchmarks ignored":                   {step: None, layer: None, expert: None, phase: ""},
		"Deepseekv3MoE":                                   {step: None, layer: None, expert: None, phase: ""}, // shared experts too
		"nn.Module: Linear_3":                             {step: None, layer: None, expert: None, phase: ""},
		"aten::add":                                       {step: None, layer: None, expert: None, phase: ""},
		"gate_proj":                                       {step: None, layer: None, expert: None, phase: ""},
		"model.layers.3.mlp.gate_proj":                    {step: None, layer: 3, expert: None, phase: ""},
		"model.layers.3.mlp.gate_up_proj":                 {step: None, layer: 3, expert: None, phase: ""},
		"cub::DispatchRadixSort":                          {step: None, layer: None, expert: None, phase: ""},
		"investigate":                                     {step: None, layer: None, expert: None, phase: ""},
		"layer 99999999999 router":                        {step: None, layer: None, expert: None, phase: PhaseRouter}, // no 32-bit number
	} {
		got := patterns.label(name)
		got.module = false
		if got != want {
			t.Errorf("%q: want %+v, have %+v", name, want, got)
		}
	}
}

func TestUserPatternsComeFirst(t *testing.T) {
	patterns, err := NewPatterns(`^L(?P<layer>\d+)$`, `^layer (?P<expert>\d+) router$`)
	if err != nil {
		t.Fatal(err)
	}
	if got := patterns.label("L7"); got.layer != 7 {
		t.Errorf("have %+v", got)
	}
	if got := patterns.label("layer 3 router"); got.expert != 3 || got.layer != 3 || got.phase != PhaseRouter {
		t.Errorf("each group by its first pattern: have %+v", got)
	}
	for _, bad := range []string{`(`, `layer (\d+)`, `(?P<rank>\d+)`} {
		if _, err := NewPatterns(bad); err == nil {
			t.Errorf("%q: want an error", bad)
		}
	}
}

// Labels never hold numbers that no range can mean, whatever the name.
func FuzzLabel(f *testing.F) {
	patterns, err := NewPatterns(`x(?P<step>.*)y(?P<phase>.*)`)
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range []string{"layer 0 expert 3", "[Executor] _forward_step 1: 2 ctx reqs", "model.layers.3.mlp.experts.1", "x-1y\xff", "b=1 s=2 EP3"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		l := patterns.label(name)
		if l.step < unnumbered || l.layer < None || l.expert < None || l.phase != "" && phaseWords[string(l.phase)] == "" && l.phase != PhaseOther && l.phase != phaseIgnored {
			t.Errorf("%q: %+v", name, l)
		}
		if short := string(withoutInstance([]byte(name))); len(short) > len(name) || name[:len(short)] != short {
			t.Errorf("%q: shortened to %q", name, short)
		}
	})
}
