package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/testdata/require"
)

// ask runs the program, wants an exit code, and decodes the JSON it printed.
func ask(t *testing.T, code int, into any, args ...string) (stderr string) {
	t.Helper()
	stdout, stderr, got := invoke(t.Context(), args...)
	if got != code {
		t.Fatalf("%v: exit %d, want %d: %s", args, got, code, stderr)
	}
	if into != nil {
		if err := json.Unmarshal([]byte(stdout), into); err != nil {
			t.Fatalf("%v: %v in %q", args, err, stdout)
		}
	}
	return stderr
}

type generated struct {
	Kind    string `json:"kind"`
	Entries []struct {
		Path   string   `json:"path"`
		Tokens int      `json:"tokens_per_rank"`
		New    bool     `json:"new"`
		Status string   `json:"status"`
		Spread *float64 `json:"bias_spread_survived"`
	} `json:"entries"`
}

// The keys are a contract. DeepSeek-V3 at EP 8 with 1 token per rank by hand: 64 slots on 256
// experts, so the floor is 1/(64/256) = 4, ranks get 8 each, 64 experts are active.
func TestLogitsVerifyKeys(t *testing.T) {
	dir := t.TempDir()
	ask(t, exitDone, nil, "logits", "generate", "--model", "deepseek-v3", "--ep", "8", "--dtype", "float16", "--tokens",
		"1,8", "--cache", dir)
	var r struct {
		SchemaVersion int              `json:"schema_version"`
		Kind          string           `json:"kind"`
		Balance       []map[string]any `json:"balance"`
		Entries       []map[string]any `json:"entries"`
	}
	ask(t, exitDone, &r, "logits", "verify", "--format", "json", dir)
	if r.SchemaVersion != 1 || r.Kind != "logits verify" || len(r.Balance) != 2 || len(r.Entries) != 16 {
		t.Fatalf("%d %q: %d balances, %d entries", r.SchemaVersion, r.Kind, len(r.Balance), len(r.Entries))
	}
	want := map[string]any{
		"model": "deepseek-v3", "method": "DeepSeekV3", "experts": 256., "top_k": 8., "plan": "diagonal/2", "mode": "dep",
		"dtype": "float16", "ranks": 8., "drawn": false,
		"tokens_per_rank": 1., "expert_max_over_mean": 4., "expert_floor": 4.,
		"rank_max_over_mean": 1., "rank_floor": 1., "active_experts": 64., "at_floor": true, "bytes": 7040., "entries": 8.,
		"active_experts_ideal": 64., "certificate": nil,
	}
	if !maps.Equal(r.Balance[0], want) {
		t.Errorf("balance %v, want %v", r.Balance[0], want)
	}
	if e := r.Entries[11]; e["path"] != filepath.Join(dir, "diagonal-rank3-8.safetensors") || e["status"] != "exact" ||
		e["bytes"] != 4696. || e["tokens_per_rank"] != 8. || e["table"] != nil {
		t.Errorf("entry %v", e)
	}
}

func TestLogitsGenerateAddsWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	base := []string{"logits", "generate", "--model", "mixtral-8x7b", "--ep", "4", "--format", "json", "--cache", dir}
	for _, c := range []struct {
		args           []string
		entries, fresh int
	}{
		{[]string{"--tokens", "1,2"}, 8, 8},
		{[]string{"--tokens", "1,2"}, 8, 0},
		{[]string{"--tokens", "2,3,3,2"}, 8, 4},
		{[]string{"--tokens", "1", "--plan", "uniform"}, 4, 4},
		{[]string{"--target", "1.3"}, 4, 4}, {[]string{"--plan", "target:1.3"}, 4, 0},
		{nil, 4, 4},
	} {
		var r generated
		ask(t, exitDone, &r, append(slices.Clone(base), c.args...)...)
		fresh := 0
		for _, e := range r.Entries {
			if e.New {
				fresh++
			}
		}
		if len(r.Entries) != c.entries || fresh != c.fresh {
			t.Errorf("%v: %d entries, %d new; want %d, %d", c.args, len(r.Entries), fresh, c.entries, c.fresh)
		}
	}
	// Ranks 0 and 2 of 2 tokens are missing, and that is a fault.
	for _, rank := range []string{"0", "2"} {
		require.NoError(t, os.Remove(filepath.Join(dir, "diagonal-rank"+rank+"-2.safetensors")))
	}
	stderr := ask(t, exitGate, nil, "logits", "verify", dir)
	if !strings.Contains(stderr, "2 of ") || !strings.Contains(stderr, "have none for rank 0") ||
		strings.Count(stderr, "\n") != 1 {
		t.Errorf("verify says %q", stderr)
	}
	// The command that writes it again is what the manifest says, without placeholders.
	stdout, _, _ := invoke(t.Context(), "logits", "verify", dir)
	if want := "Next: Write the cache again.\n  moebalance logits generate --model mixtral-8x7b --ep 4 --mode dep --dtype bfloat16 --cache " + launch.Quote([]string{dir}) +
		"\n"; !strings.Contains(stdout, want) {
		t.Errorf("want %q in %s", want, stdout)
	}
	stdout, _, _ = invoke(t.Context(), "logits", "list", dir)
	if !strings.Contains(stdout, "  0, 2\n") || strings.Contains(stdout, ", 0 B") {
		t.Errorf("list says %s", stdout)
	}
	damaged := put(t, filepath.Join(dir, "diagonal-rank1-2.safetensors"), "x")
	base[slices.Index(base, "json")] = "text"
	stdout, _, code := invoke(t.Context(), append(base, "--tokens", "2")...)
	if code != exitDone || !strings.Contains(stdout, "- Replaced "+damaged+": damaged: ") {
		t.Errorf("exit %d: %s", code, stdout)
	}
}

func TestLogitsFormats(t *testing.T) {
	dir := t.TempDir()
	ask(t, exitDone, nil, "logits", "generate", "--model", "e8k2", "--ep", "4", "--tokens", "3",
		"--cache", dir)
	for _, verb := range []string{"verify", "list"} {
		csv, _, code := invoke(t.Context(), "logits", verb, "--format", "csv", dir)
		lines := strings.Split(strings.TrimSpace(csv), "\n")
		// 12 ranks·tokens·… : 4 ranks of 3 tokens, top-2: 24 slots on 8 experts, 3 each.
		if code != exitDone || len(lines) != 2 || !strings.Contains(lines[0], "expert_max_over_mean,expert_floor") ||
			!strings.HasPrefix(lines[1], "e8k2,Renormalize,diagonal/2,dep,bfloat16,4,3,1,1,1,1,8,8,,4,") {
			t.Errorf("%s: exit %d: %q", verb, code, csv)
		}
		md, _, code := invoke(t.Context(), "logits", verb, "--table", "balance", "--format", "md", dir)
		if code != exitDone || !strings.Contains(md, "| e8k2 | Renormalize |") {
			t.Errorf("%s: exit %d: %q", verb, code, md)
		}
	}
}
