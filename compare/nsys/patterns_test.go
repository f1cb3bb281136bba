package nsys

import "testing"

func TestBuiltInPatterns(t *testing.T) {
	patterns, err := NewPatterns()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]label{
		"[Executor] _forward_step 12: 3 ctx reqs, 5 gen reqs": {12, None, None, ""},
		"layer_wise_benchmarks layer_idx 5":                   {None, 5, None, ""},
		"b=8 s=1 past=128 EP4":                                {unnumbered, None, None, ""},
		"layer 0 router":                                      {None, 0, None, PhaseRouter},
		"layer 11 dispatch":                                   {None, 11, None, PhaseDispatch},
		"layer 2 experts":                                     {None, 2, None, PhaseExperts},
		"layer 2 expert 31":                                   {None, 2, 31, PhaseExperts},
		"layer 2 combine":                                     {None, 2, None, PhaseCombine},
		"model.layers.3.mlp.experts":                          {None, 3, None, PhaseExperts},
		"model.layers.3.mlp.experts.17":                       {None, 3, 17, PhaseExperts},
		"model.layers.10.self_attn":                           {None, 10, None, PhaseAttention},
		"model.layers.10.self_attn.qkv_proj":                  {None, 10, None, PhaseAttention},
		"model.layers.7.mlp.gate":                             {None, 7, None, PhaseRouter},
		"model.layers.7.mlp":                                  {None, 7, None, ""},
		"{'Module': 'model.layers.4.mlp.experts', 'TrainableParams': {}}": {None, 4, None, PhaseExperts},
		"DeepseekV3Gate":  {None, None, None, PhaseRouter},
		"MLA":             {None, None, None, PhaseAttention},
		"FusedMoE":        {None, None, None, PhaseExperts},
		"execute_model":   {unnumbered, None, None, ""},
		"ProfilerStep#14": {14, None, None, ""},
		"step 3":          {3, None, None, ""},
		// not ours
		"aten::add":                       {None, None, None, ""},
		"gate_proj":                       {None, None, None, ""},
		"model.layers.3.mlp.gate_proj":    {None, 3, None, ""},
		"model.layers.3.mlp.gate_up_proj": {None, 3, None, ""},
		"cub::DispatchRadixSort":          {None, None, None, ""},
		"investigate":                     {None, None, None, ""},
		"layer 99999999999 router":        {None, None, None, PhaseRouter}, // no 32-bit number
	} {
		if got := patterns.label(name); got != want {
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
		if l.step < unnumbered || l.layer < None || l.expert < None || l.phase != "" && phaseWords[string(l.phase)] == "" && l.phase != PhaseOther {
			t.Errorf("%q: %+v", name, l)
		}
		if short := string(withoutInstance([]byte(name))); len(short) > len(name) || name[:len(short)] != short {
			t.Errorf("%q: shortened to %q", name, short)
		}
	})
}
