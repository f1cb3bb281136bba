package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router"
)

func runPlans(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"logits", "plans"}, args...), nil, &out, &errs)
	return out.String(), errs.String(), code
}

// The numbers of the reference are the published ones for 256 experts, top-8, 8
// ranks and 8 tokens each: 4.0 and 120 of 256 active experts.
func TestLogitsPlansText(t *testing.T) {
	out, _, code := runPlans(t, "--model", "deepseek-v3", "--ep", "8", "--tokens", "8", "--plans", "trtllm-gen2,diagonal", "--format", "csv")
	want := `ranks,tokens_per_rank,plan,rank_max_over_mean,rank_floor,expert_max_over_mean,expert_floor,active_experts,active_experts_ideal,pair_excess_slots,receiver_conflict,optimal
8,8,trtllm-gen2,1,1,4,1,120,256,8,1,false
8,8,diagonal,1,1,1,1,256,256,0,1,true
`
	if code != exitDone || out != want {
		t.Errorf("exit %d, output\n%s\nwant\n%s", code, out, want)
	}
}

func TestLogitsPlansFormatsAgree(t *testing.T) {
	args := []string{"--experts", "60", "--top-k", "4", "--ep", "4,8", "--tokens", "0,3"}
	out, _, code := runPlans(t, append(args, "--format", "json")...)
	var result plansResult
	if err := json.Unmarshal([]byte(out), &result); err != nil || code != exitDone {
		t.Fatal(err, code)
	}
	if result.SchemaVersion != 1 || result.Kind != "logits plans" || len(result.Plans) != 12 {
		t.Fatalf("schema %d, kind %q, %d plans; want 1, logits plans, 2 sizes of 2 ranks of 3 plans", result.SchemaVersion, result.Kind, len(result.Plans))
	}
	for _, row := range result.Plans {
		refuses := row.Ranks == 8 && strings.HasPrefix(row.Name, "trtllm")
		if (row.Certificate == nil) != refuses || (row.Refused != "") != refuses {
			t.Errorf("%s on %d ranks: certificate %v, refused %q; the reference alone refuses 60 experts on 8 ranks", row.Name, row.Ranks, row.Certificate, row.Refused)
		}
		if row.Certificate != nil && row.TokensPerRank == 0 && row.Certificate.Rank.MaxOverMean.Defined() {
			t.Error("max/mean of no slots is undefined")
		}
	}
	text, _, _ := runPlans(t, args...)
	md, _, _ := runPlans(t, append(args, "--format", "md")...)
	if a, b := strings.Count(text, "diagonal"), strings.Count(md, "diagonal"); a != b || a != 5 {
		t.Errorf("text names diagonal %d times and md %d times, want 5: the headline and 4 rows", a, b)
	}
}

func TestLogitsPlansUsage(t *testing.T) {
	for _, args := range [][]string{
		{},
		{"--model", "deepseek-v3", "--plans", "best"},
		{"--model", "deepseek-v3", "--plans", "replay"},
		{"--model", "deepseek-v3", "--tokens", "-1"},
		{"--model", "deepseek-v3", "--ep", "0"},
		{"--model", "deepseek-v3", "--ep", "257"},
		{"--model", "deepseek-v3", "--mode", "dp"},
		{"--experts", "8"},
		{"--model", "deepseek-v3", "--experts", "8", "--top-k", "2"},
	} {
		if out, errs, code := runPlans(t, args...); code != exitUsage || out != "" || !strings.HasPrefix(errs, "moebalance: ") {
			t.Errorf("%q: exit %d, stdout %q, stderr %q; want 2 and a message", args, code, out, errs)
		}
	}
}

func TestFaults(t *testing.T) {
	for want, c := range map[string]router.Certificate{
		"":               {Valid: true},
		"twice":          {Duplicates: 1},
		"differently":    {Disagreements: 1},
		"8 groups where": {Groups: 8, GroupsLimit: 4},
	} {
		if got := fault("x", c); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("fault of %+v: %q, want something about %q", c, got, want)
		}
	}
}
