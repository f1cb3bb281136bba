package evidence

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
)

// The most that a rank recorded counts; a file that does not say is none.
func TestRecordedShare(t *testing.T) {
	for files, want := range map[string]float64{
		`{"steps": 8, "steps_recorded": 4}; {"steps": 8, "steps_recorded": 2}`: 0.5, `{"steps": 1, "steps_recorded": 4}`: 1, `{"steps_recorded": 3}; {"steps": 8`: 0, "": 0} {
		folder := t.TempDir()
		for rank, text := range strings.Split(files, "; ") {
			path := filepath.Join(folder, fmt.Sprintf("moebalance-hook.rank%d.json", rank))
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		}
		if have := RecordedShare(folder); have != want {
			t.Errorf("%s: have %v, want %v", files, have, want)
		}
	}
}

// Processes are the product of tensor and pipeline ranks, and 0 of a command that names neither.
func TestWordsOfACommand(t *testing.T) {
	for command, want := range map[string]string{"serve --tp_size 4 --ep_size=2": "2 4 ",
		"serve --tp=2 --pp-size 3": "0 6 ", "serve --moe-expert-parallel-size 4": "4 0 ", "serve --steps 8 --help": "0 0 ", "serve --ep 2 --ep 4": "2 0 ",
		"serve models/DeepSeek-V3": "0 0 models/DeepSeek-V3", "serve --model=org/DeepSeek-R1": "0 0 org/DeepSeek-R1",
		"serve Qwen3-30B-A3B": "0 0 "} {
		words := strings.Fields(command)
		ranks, processes := Ranks(words)
		if have := fmt.Sprint(ranks, processes, " ", GroupLimited(words)); have != want {
			t.Errorf("%s: have %q, want %q", command, have, want)
		}
	}
}

// What places experts elsewhere than contiguously is named, with the file that it names if there is one.
func TestPlacement(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "map.json")
	require.NoError(t, os.WriteFile(file, []byte("{}"), 0o600))
	for text, want := range map[string]string{
		"vllm serve M --enable-expert-parallel":        "",
		"--model replacement --placement-group 2":      "",
		"--expert-placement-strategy=round_robin":      "--expert-placement-strategy",
		"--init-expert-location map.json --tp 8":       "--init-expert-location map.json",
		"sh -c 'serve --init-expert-location '" + file: "--init-expert-location map.json",
		"--init-expert-location . --tp 8":              "--init-expert-location",
		`{"expert_map_path": "map.json"}`:              "expert_map_path map.json",
		"MOEBALANCE_PLACEMENT=map.json":                "MOEBALANCE_PLACEMENT map.json",
		"--Enable-EPLB":                                "--Enable-EPLB",
		"--num-redundant-experts 4":                    "--num-redundant-experts",
		"--redundant_experts=4 --x 1":                  "--redundant_experts",
		"moe_load_balancer: {}":                        "moe_load_balancer",
	} {
		named, at := Placement([]string{"none", text}, folder)
		if got := strings.TrimSpace(named + " " + strings.TrimPrefix(at, folder+"/")); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	for _, value := range append(slices.Clone(ordinary), "Trivial", "FALSE") {
		if named, _ := Placement([]string{"--init-expert-location " + value}, folder); named != "" {
			t.Errorf("%s: %q", value, named)
		}
	}
}

// Lines count by rank: the one that they name, else the launcher's; failures are apart.
func TestFindLines(t *testing.T) {
	folder := t.TempDir()
	log, long := filepath.Join(folder, "log"), strings.Repeat("x", 70<<10)
	require.NoError(t, os.WriteFile(log, []byte("even on rank 1 of 4 token=hf_aBcDeFgHiJkLmNoPqRsT even on rank 1 of 4\n3: even\n"+long+
		" even on rank 0 of 4\neven on rank 12 of 4 "+strings.Repeat("ü", 200)+"\nbroken"), 0o600))
	found := require.Value(FindLines(`even(?: on rank (?P<rank>\d+) of (?P<ranks>\d+)(?: token=\S+| ü+)?)?`, "brok",
		[]string{log, filepath.Join(folder, "none")}))
	for i := range found {
		if text := found[i].Text; len(text) > 200 || strings.Contains(text, "hf_a") || strings.ToValidUTF8(text, "") != text {
			t.Errorf("%q", text)
		}
		found[i].Text = ""
	}
	if want := []ProofLine{{Rank: 0, Ranks: 4, Times: 1}, {Rank: 1, Ranks: 4, Times: 2}, {Rank: 3, Times: 1},
		{Rank: 12, Ranks: 4, Times: 1}, {Rank: -1, Times: 1, Failed: true}}; !slices.Equal(found, want) {
		t.Errorf("%+v, want %+v", found, want)
	}
	for _, text := range []string{"rank 65537 of 2", "rank 1 of 65537"} {
		require.NoError(t, os.WriteFile(log, []byte(text), 0o600))
		if found, err := FindLines(`rank (?P<rank>\d+) of (?P<ranks>\d+)`, "", []string{log}); err == nil {
			t.Errorf("%s: %+v", text, found)
		}
	}
	if found, err := FindLines("", "", []string{folder}); found != nil || err != nil {
		t.Errorf("without patterns: %+v, %v", found, err)
	}
}
