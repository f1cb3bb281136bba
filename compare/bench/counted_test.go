package bench

import (
	"testing"

	"github.com/moebalance/moebalance/compare/bench/control"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/bench/proof"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// even is counts at their floors of so many slots in each of four layers.
func even(slots int64) *proof.LoadProof {
	return &proof.LoadProof{Ranks: 2, TopK: 8, RankMaxOverMean: 1, RankFloor: 1, ExpertMaxOverMean: 1, ExpertFloor: 1,
		Slots: map[int]int64{0: slots, 1: slots, 2: slots, 3: slots}}
}

func reporting(input, output int64) *metrics.Result {
	r := &metrics.Result{Work: map[string]float64{}}
	if input >= 0 {
		r.Work[gain.WorkInputTokens] = float64(input)
	}
	if output >= 0 {
		r.Work[gain.WorkOutputTokens] = float64(output)
	}
	return r
}

// Only a factor of two between counted and reported tokens contradicts the counts.
func TestCountsAgainstReport(t *testing.T) {
	for name, c := range map[string]struct {
		counted *proof.LoadProof
		result  *metrics.Result
		proves  bool
	}{
		"equal":                         {even(8 * 32000), reporting(31000, 1000), true},
		"cached prefixes":               {even(8 * 17000), reporting(31000, 1000), true},
		"32 slots":                      {even(32), reporting(31000, 1000), false},
		"three times as much":           {even(8 * 96000), reporting(31000, 1000), false},
		"output alone is a lower bound": {even(8 * 96000), reporting(-1, 1000), true},
		"less than the output":          {even(8 * 400), reporting(-1, 1000), false},
		"top-k unknown, few": {&proof.LoadProof{ExpertMaxOverMean: 1, ExpertFloor: 1,
			RankMaxOverMean: router.Undefined(), Slots: map[int]int64{3: 32}}, reporting(31000, 1000), false},
		"a tenth of the steps recorded": {&proof.LoadProof{ExpertMaxOverMean: 1, ExpertFloor: 1,
			RankMaxOverMean: router.Undefined(), TopK: 8, Recorded: 0.1, Slots: map[int]int64{3: 8 * 3200}},
			reporting(31000, 1000), true},
	} {
		v := reported(c.result)
		v.order.Counted = c.counted
		p := Spec{}.rules().OfArm(gain.Perfect, []proof.Launch{Spec{}.shown(v)})[0]
		if (p.Grade != gain.None) != c.proves {
			t.Errorf("%s: %s", name, p.Evidence)
		}
	}
}

// Counts under an order for several points are the load of none of them.
func TestLoadOfAPoint(t *testing.T) {
	counted := even(8)
	counted.RankMean = 1.2
	at := func(point string, sequence int) Segment {
		return Segment{Run: control.Run{Sequence: sequence, Point: point, Timed: true}, Result: reporting(1, 1)}
	}
	for _, c := range []struct {
		segments []Segment
		want     router.Number
	}{
		{[]Segment{at("8", 1), at("8", 1), at("64", 2)}, 1.2}, {[]Segment{at("8", 1), at("64", 1)}, 0},
	} {
		a := Attempt{Segments: c.segments, Orders: []Ordered{{Sequence: 1, Counted: counted}}}
		if load := (Spec{}).loadOf(a, c.segments[0]); load.MaxOverMean != c.want || load.Measured != (c.want > 0) {
			t.Errorf("%+v, want %v", load, c.want)
		}
	}
}

// Ranks that look even with contiguous experts prove nothing where the command, or its environment, places experts
// elsewhere.
func TestPlacementOfTheCommand(t *testing.T) {
	for option, a := range map[string]Attempt{"": {Arguments: []string{"vllm", "serve", "M"}},
		"--init-expert-location": {Arguments: []string{"--init-expert-location", "map.json", "--tp", "8"}},
		"MOEBALANCE_PLACEMENT":   {Environment: map[string]string{"MOEBALANCE_PLACEMENT": "map.json", "VLLM_EPLB": ""}}} {
		if named, _ := a.placement(""); named != option {
			t.Errorf("%+v: %q, want %q", a, named, option)
		}
	}
}
