package trace

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router"
)

func TestArmEvidence(t *testing.T) {
	for assignment, want := range map[string]string{
		`ENABLE_PERFECT_ROUTER="1"`: "perfect", `ENABLE_PERFECT_ROUTER=1`: "perfect",
		`ENABLE_PERFECT_ROUTER="0"`: "normal", `ENABLE_PERFECT_ROUTER=""`: "normal",
		`ENABLE_PERFECT_ROUTER="true"`: "normal",                               // TensorRT-LLM compares with "1"
		`HOME="/root"`:                 "", `MY_ENABLE_PERFECT_ROUTER="1"`: "", // other engines have other switches
		`SGLANG_SIMULATE_ROUND_ROBIN_EXPERTS="1"`: "perfect", `SGLANG_SIMULATE_UNIFORM_EXPERTS="true"`: "perfect",
		`SGLANG_SIMULATE_UNIFORM_EXPERTS="0"`:                   "normal",
		`VLLM_MOE_ROUTING_SIMULATION_STRATEGY="uniform_random"`: "perfect",
		`VLLM_MOE_ROUTING_SIMULATION_STRATEGY="normal_routing"`: "normal",
	} {
		trace := mustRead(t, Options{},
			newFixture().work(0, 1, 10, 7, "fused_moe_kernel").environment(assignment).write(t, "x.sqlite"))
		equal(t, assignment, trace.Arm, want)
	}
	a := newFixture().work(0, 1, 10, 7, "k").environment(`ENABLE_PERFECT_ROUTER="1"`).write(t, "a.sqlite")
	b := newFixture().work(1, 1, 10, 8, "k").environment(`ENABLE_PERFECT_ROUTER="0"`).write(t, "b.sqlite")
	if _, err := Read(context.Background(), []string{a, b}, Options{}); !errors.Is(err, ErrNotOneRun) ||
		!strings.Contains(err.Error(), "compare") {
		t.Errorf("both arms: have %v", err)
	}
	silent := newFixture().work(1, 1, 10, 8, "k").environment(`HOME="/root"`).write(t, "c.sqlite")
	if trace := mustRead(t, Options{}, a, silent); trace.Arm != "" ||
		trace.ArmEvidence != "not all exports record the arm" {
		t.Errorf("one rank says nothing: have arm %q: %s", trace.Arm, trace.ArmEvidence)
	}
}

// The ranks of vLLM's capture with data-parallel attention ended their switch 258 ms apart, and waited for each other
// in the step after it, 221: it is of no arm. Before it the normal arm lacks no step.
func TestStepAfterASwitch(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(testdata, "field/results/vllm-four-h100/dep.rank?.json.gz"))
	if err != nil || len(paths) != 4 {
		t.Fatal(paths, err)
	}
	for arm, want := range map[string][2]router.OptInt{"normal": {203, 220}, "perfect": {222, 232}} {
		trace := mustRead(t, Options{Arm: arm}, paths...)
		equal(t, arm+": first step", trace.StepTimes[0].Step, want[0])
		equal(t, arm+": last step", trace.StepTimes[len(trace.StepTimes)-1].Step, want[1])
		equal(t, arm+": said", hasWarning(trace.Warnings, "switched"), arm == "perfect")
	}
}

// Steps of arms N, P and T (target:2), lower case where the order lapsed: which of them are of the arm that is asked for.
func TestStepsOfAnArm(t *testing.T) {
	names := map[rune]string{'N': "normal", 'P': "perfect", 'T': "target-2", 'n': "normal expired"}
	for _, c := range []struct{ steps, ask, arm, want, switched string }{
		{"NNPP", "", "normal", "[0 1]", ""},
		{"NNPP", "perfect", "perfect", "[3]", "[2]"},
		{"NNPPNN", "normal", "normal", "[0 1 5]", "[4]"},
		{"NnPP", "perfect", "perfect", "[3]", "[2]"}, // ranks may have switched in the lapsed step, or after it
		{"PPN", "", "normal", "[2]", ""},             // the only one
		{"nN", "", "normal", "[1]", ""},              // likewise
		{"nNNP", "", "normal", "[2]", "[1]"},
		{"TTPP", "", "target-2", "[0 1]", ""},
	} {
		f := newFixture()
		for i, arm := range c.steps {
			at := int64(100 * i)
			f.push(0, at, at+50, fmt.Sprintf("moebalance step=%d tokens=8 sequence=1 arm=%s", i, names[arm])).
				work(0, int64(i+1), at+10, 20, "fused_moe_kernel")
		}
		trace := mustRead(t, Options{Arm: c.ask}, f.write(t, "x.sqlite"))
		var have []router.OptInt
		for _, s := range trace.StepTimes {
			have = append(have, s.Step)
		}
		said := ""
		for _, w := range trace.Warnings {
			if w.Code == "switched" {
				said = fmt.Sprint(w.Args["steps"])
			}
		}
		equal(t, c.steps+": arm", trace.Arm, c.arm)
		equal(t, c.steps+": steps", fmt.Sprint(have), c.want)
		equal(t, c.steps+": said", said, c.switched)
	}
}
