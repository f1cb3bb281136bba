package counts

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// Maps of copies are placements, not loads; --axes says otherwise. The smallest row that has every
// number from 0 is one; without a 0, or with a number that the row has no room for, it is counts.
func TestMapsAreNoLoads(t *testing.T) {
	for text, isMap := range map[string]bool{
		"[[0, 1, 2, 3, 0, 1], [3, 2, 1, 0, 3, 2]]": true, "[[0, 1], [1, 0]]": true, "[0, 1, 2, 3, 0, 1]": true,
		"[[9, 4, 6], [5, 5, 7]]": false, "[[1, 2], [2, 1]]": false, "[[0, 2], [2, 0]]": false, "[[0, 0], [0, 0]]": false,
		"[" + strings.Repeat("[1, 2, 3, 5], ", 14) + "[5, 3, 2, 1]]": false, // of layers, as one more are of tokens
		"[[0, 1], [0, 0]]": true, "[[0, 1], [1, 2]]": false, "[[[0, 1], [2, 3]], [[3, 2], [1, 0]]]": true, "[[1, -1, 5], [1, 0, 2]]": true,
	} {
		if _, err := parse("x", []byte(text)); strings.Contains(fmt.Sprint(err), "is a placement") != isMap {
			t.Errorf("%s: %v", text, err)
		}
	}
	if r, err := withAxes([]byte("[[0, 1], [1, 0]]"), "layers,experts"); err != nil || r.Slots() != 2 {
		t.Error(r, err)
	}
}

// One rank's recording says nothing of the load over ranks: 256 experts of which 0 to 15 have load.
func TestOneRankAlone(t *testing.T) {
	o := Options{Ranks: 16, Threshold: 0.1}
	res, r := NewResult(0.1), mustRead(fixture("counts", "users", "one-rank.json"))
	if err := res.Add(r, o); err != nil || len(res.Summary) > 0 || len(res.Imbalance) > 0 ||
		!slices.ContainsFunc(res.Warnings, func(w router.Warning) bool {
			return w.Code == OneRank && w.Args["first"] == 0.0 && w.Args["last"] == 15.0 && w.Args["ranks"] == 16.0
		}) {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := r.ExpertsOf(nil); err == nil {
		t.Error("a placement is learned from one rank")
	}
	for text, alone := range map[string]bool{
		"[[40, 30, 0, 0], [9, 80, 0, 0]]": true, "[[0, 0, 40, 30]]": false, "[[40, 30, 1, 0]]": false, // 2 of 4 by chance
		"[[0, 0, 0, 0, 40, 30, 20, 10]]": true,
		"[[40, 0, 0, 0], [30, 0, 0, 0]]": false, "[[0, 40, 30, 0]]": false, "[[40, 23, 0, 0]]": false, // 63 slots
		"[[40, 0, 30, 0]]": false, "[[40, 30]]": false,
	} {
		if have := slices.Contains(codes(parsed(text).Warnings), OneRank); have != alone {
			t.Errorf("%s: %v", text, have)
		}
	}
	log := parsed("rank_load step=1 rank_tokens=[100, 0]\nrank_load step=2 rank_tokens=[90, 0]\n")
	both := parsed("rank_load step=1 rank_tokens=[100, 90]\n")
	if _, err := both.ExpertsOf(nil); !slices.Contains(codes(log.Warnings), OneRank) || len(both.Warnings) > 0 || err == nil {
		t.Error(log.Warnings, both.Warnings, err)
	}
}

// The hook's folder under a kernel that hides its choices says which one, and what shows them; else what it lacks.
func TestFolderOfAHiddenKernel(t *testing.T) {
	for hidden, want := range map[string]string{
		`, "hidden": ["Mxfp4's kernel chooses the experts, unseen; vLLM shows them with --moe-backend marlin"]`: "in 7 steps: Mxfp4's",
		`, "hidden": []`: "so the engine was ended before",
	} {
		dir, proof := t.TempDir(), "moebalance-hook.rank0.json"
		put(t, dir, proof, fmt.Appendf(nil, `{"steps": 7, "steps_recorded": 0%s}`, hidden))
		if r, err := Read(dir); err == nil || !strings.Contains(err.Error(), want) || !InFolder(proof) {
			t.Errorf("%+v, %v", r, err)
		}
	}
}
