package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/bench/control"
	"github.com/moebalance/moebalance/compare/bench/evidence"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/bench/proof"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

func said(perfect bool, ranks int, loads ...float64) view {
	p := metrics.Proof{Claimed: true, Perfect: perfect, Ranks: ranks}
	for i := 0; i+1 < len(loads); i += 2 {
		p.Layers = append(p.Layers, metrics.LayerBalance{Layer: i / 2, RankMaxOverMean: router.Number(loads[i]),
			ExpertMaxOverMean: router.Number(loads[i+1])})
	}
	return reported(&metrics.Result{Proof: p})
}

// reported is what a launch with this report shows.
func reported(r *metrics.Result) view {
	a := Attempt{Segments: []Segment{{Result: r, Run: control.Run{Timed: true}}}}
	return view{a, Ordered{}, *r}
}

// The lines are those that TensorRT-LLM prints, of the older and the newer kind, in any log of a launch.
func TestProveByLine(t *testing.T) {
	const older = "Precomputing perfect router logits for 22 common batch sizes"
	folder, newer := t.TempDir(), func(rank int) string { return fmt.Sprintf("%s (ep_rank=%d)", older, rank) }
	for name, log := range map[string]string{launch.Stdout: older + "...\nwithout a newline: " + older,
		launch.Stderr: "0: [TRT-LLM] [I] start\n1: " + newer(1) + "...\n" + newer(0) + "...\r\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(log), 0o600))
	}
	found := require.Value(require.Value(ParseTreatment("trtllm")).findLines(folder))
	if want := []evidence.ProofLine{{Rank: gain.AllRanks, Times: 2, Text: older}, {Rank: 0, Times: 1, Text: newer(0)},
		{Rank: 1, Times: 1, Text: newer(1)}}; !slices.Equal(found, want) {
		t.Errorf("found %+v, want %+v", found, want)
	}
}

// campaignOf is a finished campaign of these launches, by arm.
func campaignOf(spec Spec, normal, perfect []view) *Campaign {
	spec.Design = Design{Pairs: len(normal)}
	c := &Campaign{Spec: spec, Launches: spec.plan()}
	for i, l := range c.Launches {
		v := normal[l.Pair]
		if l.Arm == gain.Perfect {
			v = perfect[l.Pair]
		}
		a := v.Attempt
		a.Number, a.State, v.order.Arm = 1, Finished, l.Arm
		a.Orders = []Ordered{v.order}
		c.Launches[i].Attempts = []Attempt{a}
	}
	return c
}

// printing is a launch whose ranks print the proof line.
func printing(ranks ...int) view {
	a := reported(&metrics.Result{})
	for _, r := range ranks {
		a.LinesFound = append(a.LinesFound, evidence.ProofLine{Rank: r, Times: 1, Text: "x"})
	}
	return a
}

// Which ranks of an arm all its launches together prove.
func TestProofOverLaunches(t *testing.T) {
	trtllm, _ := ParseTreatment("trtllm")
	skewed, even, counted := said(false, 2, 1.5, 2), said(true, 2, 1, 1), printing(0)
	yes, no := true, false
	counted.Segments[0].Result.Proof.Ranks = 2
	counts := func(load router.Number, ranks int) view {
		v := reported(&metrics.Result{})
		v.order.Counted = &proof.LoadProof{Ranks: ranks, RankMaxOverMean: load, ExpertMaxOverMean: load}
		return v
	}
	for name, k := range map[string]struct {
		ranks           int
		normal, perfect []view
		arm             gain.Arm
		want            []bool
	}{
		"a proved normal arm":  {2, []view{skewed, said(false, 2, 1.3, 3)}, []view{even, even}, gain.Normal, []bool{yes, yes}},
		"a proved perfect arm": {2, []view{skewed, skewed}, []view{even, said(true, 2, 1.02, 1)}, gain.Perfect, []bool{yes, yes}},
		"a launch that never saw the switch": {2, []view{skewed, skewed}, []view{even, said(false, 2, 1.5, 2)}, gain.Perfect,
			[]bool{no, no}},
		"a rank in one launch of two": {2, []view{printing(), printing()}, []view{printing(0, 1), printing(0)}, gain.Perfect,
			[]bool{yes, no}},
		"no line where one perfect launch has none": {2, []view{printing(), printing()}, []view{printing(0), printing()},
			gain.Normal, []bool{no}},
		"no line in either arm":                     {2, []view{printing()}, []view{printing()}, gain.Normal, []bool{no}},
		"a rank that the report counts and no line": {0, []view{printing()}, []view{counted}, gain.Perfect, []bool{yes, no}},
		"ranks of the spec that nobody shows":       {3, []view{printing()}, []view{printing(0, 1)}, gain.Perfect, []bool{yes, yes, no}},
		"counts of all ranks":                       {2, []view{counts(2, 2)}, []view{counts(1, 2)}, gain.Perfect, []bool{yes, yes}},
		"counts that lack a rank of the other arm's": {0, []view{counts(2, 3)}, []view{counts(1, 2)}, gain.Perfect,
			[]bool{no, no}},
	} {
		var got []bool
		for _, p := range campaignOf(Spec{Treatment: trtllm, Ranks: k.ranks}, k.normal, k.perfect).proofs() {
			if p.Arm == k.arm {
				got = append(got, p.Grade != gain.None)
			}
		}
		if !slices.Equal(got, k.want) {
			t.Errorf("%s: %v, want %v", name, got, k.want)
		}
	}
}

// The counts of a launch are read where the spec says, and a launch without
// them is not finished.
func TestCountsOfALaunch(t *testing.T) {
	spec := testSpec(1)
	spec.Counts = "{out}/counts-{arm}"
	c := create(t, spec)
	h := testHost("report")
	var paths []string
	h.Counts = func(path, _ string) (proof.LoadProof, error) {
		paths = append(paths, path)
		if len(paths) == 2 {
			return proof.LoadProof{}, os.ErrNotExist
		}
		return proof.LoadProof{Source: path}, nil
	}
	err := c.Run(context.Background(), h)
	if err == nil || !strings.Contains(err.Error(), "the expert counts: file does not exist") || c.Finished() != 1 {
		t.Errorf("error %v, %d finished", err, c.Finished())
	}
	a, _ := c.Launches[0].Done()
	if got := a.Orders[0].Counted; got == nil || got.Source != paths[0] || !filepath.IsAbs(paths[0]) ||
		!strings.HasSuffix(paths[0], filepath.Join(a.Folder, "out", "counts-"+string(c.Launches[0].Arm))) {
		t.Errorf("counts were read from %q: %+v", paths, got)
	}
}

// Where more than a tenth of the launches count only because others failed, failures may choose the result. A launch
// that left processes behind at each of its attempts is one launch. Lost routers and interruptions choose nothing.
func TestFailuresThatSelect(t *testing.T) {
	for want, ended := range map[string][]State{"map[failed:1 interrupted:0 left:1 why:warn]": {Failed},
		"map[failed:2 launches:16 why:selected]":             {Failed, Failed},
		"map[failed:1 interrupted:0 left:4 lost:3 why:warn]": {Failed, Lost, Lost, Lost},
		"map[failed:0 interrupted:48 left:16 why:warn]":      slices.Repeat([]State{Interrupted}, 48),
		"map[failed:49 launches:16 why:selected]":            slices.Repeat([]State{Interrupted}, 49)} {
		c := &Campaign{Launches: slices.Repeat([]Launch{{Attempts: []Attempt{{State: Finished}}}}, 16)}
		for i, state := range ended {
			of := &c.Launches[i%16].Attempts
			*of = append([]Attempt{{State: state, Warnings: []string{leftBehind}}}, *of...)
		}
		if got := c.checkRetries(); got.Status != gain.Warn || fmt.Sprint(got.Args) != want {
			t.Errorf("%v: %+v, want %s", ended, got, want)
		}
	}
}

// Within a launch a client that is told its arm is a difference like any other.
func TestClientThatKnowsItsArm(t *testing.T) {
	c := &Campaign{Spec: withinSpec(t, 1, "")}
	c.Spec.Command.Normal = append(c.Spec.Command.Normal, "{arm}")
	if text := c.Spec.Undeclared(); !strings.Contains(text, `normal "normal", perfect "perfect"`) {
		t.Errorf("differences %q", text)
	}
	if found, _ := c.allDifferences(); len(found) != 1 || found[0].Declared {
		t.Errorf("differences %+v", found)
	}
}
