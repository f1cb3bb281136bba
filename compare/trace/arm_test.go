package trace

import (
	"fmt"
	"testing"

	"github.com/moebalance/moebalance/router"
)

func TestArmEvidence(t *testing.T) {
	for assignment, want := range map[string]string{
		`ENABLE_PERFECT_ROUTER="1"`: "perfect", `ENABLE_PERFECT_ROUTER=""`: "normal", `MY_ENABLE_PERFECT_ROUTER="1"`: "",
		`ENABLE_PERFECT_ROUTER="true"`:           "normal", // TensorRT-LLM compares with "1"
		`SGLANG_SIMULATE_UNIFORM_EXPERTS="true"`: "perfect", `SGLANG_SIMULATE_ROUND_ROBIN_EXPERTS="0"`: "normal",
		`VLLM_MOE_ROUTING_SIMULATION_STRATEGY="uniform_random"`: "perfect",
		`VLLM_MOE_ROUTING_SIMULATION_STRATEGY="normal_routing"`: "normal",
	} {
		f := newFixture().work(0, 1, 10, 7, "fused_moe_kernel").environment(assignment)
		equal(t, assignment, mustRead(t, Options{}, f.write(t, "x.sqlite")).Arm, want)
	}
	a := newFixture().work(0, 1, 10, 7, "k").environment(`ENABLE_PERFECT_ROUTER="1"`).write(t, "a.sqlite")
	silent := newFixture().work(1, 1, 10, 8, "k").environment(`HOME="/root"`).write(t, "c.sqlite")
	if trace := mustRead(t, Options{}, a, silent); trace.Arm != "" ||
		trace.ArmEvidence != "not all exports record the arm" {
		t.Errorf("one rank says nothing: have arm %q: %s", trace.Arm, trace.ArmEvidence)
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
