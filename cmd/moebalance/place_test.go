package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/router/placement"
	"github.com/moebalance/moebalance/testdata/require"
)

const (
	gptossNormal  = fixtures + "gptoss-ep4-ranks/counts-normal"
	gptossPerfect = fixtures + "gptoss-ep4-ranks/counts-perfect"
)

// placeAnswer is what programs rely on in the JSON of place.
type placeAnswer struct {
	Placements []struct {
		Redundant int
		Time      *struct{ Estimate, Low, High float64 } `json:"predicted_time_change"`
	}
}

// Time comes with evidence of it alone, and only on as many ranks as the evidence has.
func TestPlacePredictsTime(t *testing.T) {
	args := []string{"place", "--ep", "2,4", "--redundant", "8,0", "--trace", fixtures +
		"gptoss-ep4-ranks/normal.rank?.sqlite", "--judge", gptossPerfect, gptossNormal}
	var a placeAnswer
	ask(t, exitDone, &a, append(args, "--format", "json")...)
	if len(a.Placements) != 4 || a.Placements[0].Redundant > 0 || a.Placements[1].Time != nil || a.Placements[2].Time == nil {
		t.Fatalf("%+v", a)
	}
	if p := a.Placements[3].Time; p.Low > p.Estimate || p.High < p.Estimate || p.Estimate < 0 || p.Estimate > 0.05 {
		t.Errorf("%+v", p)
	}
	const vllm = fixtures + "field/results/vllm-qwen3-normal."
	dir := t.TempDir()
	decode := put(t, filepath.Join(dir, "d.json"), `{"phase": "decode"}`+get(vllm+"decode.counts.json"))
	learn := put(t, filepath.Join(dir, "l.json"), `{"layer_0": [30000, 25000, 25000, 20000]}`) // 1.10 on 2 ranks, at best 1
	few := put(t, filepath.Join(dir, "f.json"), `{"logical_count": [[`+strings.Repeat("["+strings.Repeat("60,", 127)+
		"70],", 47)+"["+strings.Repeat("60,", 127)+"70]]]}") // 7690 slots, for steps of 8192 tokens
	judge := put(t, filepath.Join(dir, "j.json"), `{"layer_0": [34000, 21000, 29000, 16000]}`)
	for want, asked := range map[string][]string{
		"another phase than":     {"place", "--ep", "2", "--trace", vllm + "rank?.json.gz", "--judge", decode, vllm + "counts.json"},
		"than the judged counts": {"place", "--ep", "2", "--trace", vllm + "rank?.json.gz", "--judge", few, vllm + "counts.json"},
		"window of counts: more windows make one that lasts\n[2] no evidence of time: give --trace EXPORT": {"place",
			"--redundant", "8", gptossNormal, gptossPerfect}, // which has nothing to teach
		"no time: give --ep 4": {"place", "--ep", "2,8", "--trace", args[6], gptossNormal},
		"expert time contradicts": {"place", "--trace", args[6], "--counts",
			gptossPerfect, "--judge", gptossNormal, gptossPerfect}, // of the other arm
		"load explains only 0 %": {"place", "--trace", fixtures +
			"gptoss-ep4-ranks/perfect.rank?.sqlite", "--judge", gptossNormal, gptossPerfect},
	} {
		if stdout := captured(t, append(asked, "--table", "notes")); !strings.Contains(stdout, want) {
			t.Error(stdout)
		}
	}
	if line := captured(t, []string{"place", "--ep", "2", "--judge", judge, learn, "--brief"}); !strings.Contains(line,
		"load falls by 9.1 % on unseen traffic; time unknown") {
		t.Error(line)
	}
}

// The counts of a trace may be an array whose axes are said.
func TestPlaceTakesAxesWithATrace(t *testing.T) {
	record := require.Value(counts.Read(gptossNormal))
	text := "["
	for layer := range 3 {
		text += strings.ReplaceAll(fmt.Sprint(record.ByLayer()[layer].PerExpert), " ", ",") + ","
	}
	bare := put(t, filepath.Join(t.TempDir(), "bare.json"), "["+strings.TrimSuffix(text, ",")+"]]")
	if out := captured(t, []string{"place", "--ep", "4", "--axes", "steps,layers,experts", "--trace", fixtures +
		"gptoss-ep4-ranks/normal.rank?.sqlite", "--judge", gptossPerfect, bare}); !strings.Contains(out, "predicted step time") {
		t.Error(out)
	}
}

// The written files hold one placement, which counts takes.
func TestPlaceWrites(t *testing.T) {
	dir := t.TempDir()
	args := []string{"place", "--redundant", "8", gptossNormal}
	var paths []string
	for _, engine := range []string{"trtllm", "sglang", "vllm", "ascend"} {
		paths = append(paths, filepath.Join(dir, engine+".json"))
		args = append(args, "--write-"+engine, paths[len(paths)-1])
	}
	if stdout := captured(t, args); strings.Count(stdout, " is written: ") != len(paths) {
		t.Error(stdout)
	}
	for _, path := range paths {
		var a countsAnswer
		ask(t, exitDone, &a, "counts", "--format", "json", "--ep", "4", "--placement", path, gptossNormal)
		if a.Summary[0].MaxOverMean > 1.01 { // contiguous: above 1.3
			t.Errorf("%s: %+v", path, a.Summary)
		}
	}
}

// From a placement that runs, a file of few moves holds most of it, and nothing is learned
// where it is moved to what it is.
func TestPlaceMovesFew(t *testing.T) {
	dir := t.TempDir()
	running, next := filepath.Join(dir, "running.yaml"), filepath.Join(dir, "next.yaml")
	captured(t, []string{"place", "--redundant", "8", "--write-trtllm", running, gptossPerfect})
	var a struct {
		Placements []struct {
			Plan, Baseline string
			Default        bool
			Redundant      int
			Moved          int     `json:"moved_experts"`
			Share          float64 `json:"moved_share"`
		}
	}
	ask(t, exitDone, &a, "place", "--format", "json", "--ep", "4", "--from", running, "--max-moves", "10%",
		"--write-trtllm", next, gptossNormal)
	p := a.Placements[0]
	if p.Plan != "moves" || !p.Default || p.Baseline != running || p.Redundant != 8 || p.Moved == 0 || p.Share > 0.1 {
		t.Fatalf("%+v", a)
	}
	from, err1 := counts.ReadPlacement(running, 4)
	to, err2 := counts.ReadPlacement(next, 4)
	require.NoError(t, errors.Join(err1, err2))
	moved := 0
	for layer := range 3 {
		before, _ := from.Layout(layer)
		after, _ := to.Layout(layer)
		moved += placement.Loaded(before, after)
	}
	if moved != p.Moved || moved > 3*40/10 {
		t.Errorf("the file moves %d copies, the result %d", moved, p.Moved)
	}
}
