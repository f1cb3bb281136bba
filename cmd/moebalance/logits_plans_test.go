package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/router/plan"
)

// The numbers of the reference are the published ones for 256 experts, top-8, 8
// ranks and 8 tokens each: 4.0 and 120 of 256 active experts. The first generation
// knows no groups: its tokens use all 8.
func TestLogitsPlansText(t *testing.T) {
	out, _, code := invoke(t.Context(), "logits", "plans", "--model", "deepseek-v3", "--ep", "8", "--tokens", "1,8", "--format", "csv")
	want := `ranks,tokens_per_rank,plan,rank_max_over_mean,rank_floor,expert_max_over_mean,expert_floor,active_experts,active_experts_ideal,valid,optimal,refused
8,1,trtllm-gen1,1,1,32,4,8,64,false,false,
8,1,trtllm-gen2,1,1,16,4,22,64,true,false,
8,1,diagonal,1,1,4,4,64,64,true,true,
8,8,trtllm-gen1,1,1,4,1,64,256,false,false,
8,8,trtllm-gen2,1,1,4,1,120,256,true,false,
8,8,diagonal,1,1,1,1,256,256,true,true,
`
	if code != exitDone || out != want {
		t.Errorf("exit %d, output\n%s\nwant\n%s", code, out, want)
	}
}

// A line for each plan says for which numbers of tokens it is at the floors. 60 experts divide over 4 ranks and not
// over 8: the reference refuses those, and our table alone ends level on 4. On 4 ranks 1 token of top-4 on each has 16 slots, of which the reference's first generation uses 4 experts.
func TestLogitsPlansSpans(t *testing.T) {
	for _, ranks := range []int{4, 8} {
		var result render.Plans
		ask(t, exitDone, &result, "logits", "plans", "--model", "e60k4", "--ep", fmt.Sprint(ranks), "--tokens", "1-3", "--json")
		if result.Kind != "logits plans" || len(result.Plans) != 9 || len(result.Spans) != 3 {
			t.Fatalf("%+v", result.Spans)
		}
		for _, s := range result.Spans {
			diagonal := s.Name == "diagonal"
			if (s.Refused != "") != (ranks == 8 && !diagonal) || (s.Every != nil) != (diagonal && ranks == 4) ||
				(len(s.AtFloors) == 3) != diagonal || s.Ranks != ranks {
				t.Errorf("%+v", s)
			}
		}
		want := plan.Worst{TokensPerRank: 1, Achieved: 4, Floor: 16}
		if first := result.Spans[0]; ranks == 4 && (first.Name != "trtllm-gen1" || *first.Active != want) {
			t.Errorf("%+v, want active experts %+v", first, want)
		}
	}
}

// A placement with replicas: experts 0 and 1 have copies on both of two ranks.
func TestLogitsPlansOfAPlacement(t *testing.T) {
	placement := put(t, filepath.Join(t.TempDir(), "placement.json"), "[[0,1,2],[3,0,1]]")
	args := []string{"logits", "plans", "--model", "e4k2", "--placement", placement, "--tokens", "7"}
	out, _, code := invoke(t.Context(), append(args, "--format", "csv")...)
	// 28 slots: 14 per rank, over 6 copies, none with more than 5. Which copy a slot
	// goes to is the dispatcher's choice, and pairs are not planned.
	if want := "\n2,7,diagonal,1,1,1.4285714285714286,1,4,4,true,true,\n"; code != exitDone ||
		!strings.Contains(out, want) || strings.Count(out, "as the reference does") != 2 {
		t.Errorf("exit %d, %s, want %q", code, out, want)
	}
	if _, _, code := invoke(t.Context(), append(args, "--ep", "2")...); code != exitUsage {
		t.Errorf("--placement with --ep: exit %d", code)
	}
}

// Help names every plan.
func TestHelpNamesPlans(t *testing.T) {
	for file, plans := range map[string][]string{"logits-generate": plan.Names(), "logits-plans": slices.Concat(plan.Names(), plan.Peers())} {
		for _, name := range plans {
			if !regexp.MustCompile(`\n  --plans?:.* ` + name + `\b`).MatchString(helpText(file)) {
				t.Errorf("help/%s.txt lacks %s", file, name)
			}
		}
	}
}
