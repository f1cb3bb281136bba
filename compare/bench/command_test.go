package bench

import (
	"reflect"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/proof"
	"github.com/moebalance/moebalance/compare/gain"
)

func TestTreatments(t *testing.T) {
	own, err := ParseTreatment("env:MY_SWITCH=on=1")
	if err != nil || own.Perfect["MY_SWITCH"] != "on=1" {
		t.Errorf("env:MY_SWITCH=on=1 gave %+v, %v", own, err)
	}
	for _, s := range []string{"", "tensorrt", "env:", "env:A", "env:=1", "env:A B=1", "env:1A=1", "env:A="} {
		if treatment, err := ParseTreatment(s); err == nil && treatment.Check() == nil {
			t.Errorf("treatment %q passed", s)
		}
	}
	trtllm, _ := ParseTreatment("trtllm")
	base := []string{"PATH=/bin", "ENABLE_PERFECT_ROUTER=1", "X=2"}
	if got := launch.Environ(base, Spec{Treatment: trtllm}.variables(gain.Normal, "")); !reflect.DeepEqual(got,
		[]string{"PATH=/bin", "X=2"}) {
		t.Errorf("the normal arm's environment is %q", got)
	}
	if got := launch.Environ(base, Spec{Treatment: trtllm}.variables(gain.Perfect, "")); !reflect.DeepEqual(got,
		[]string{"PATH=/bin", "X=2", "ENABLE_PERFECT_ROUTER=1", "TRTLLM_ENABLE_PERFECT_ROUTER=1"}) {
		t.Errorf("the perfect arm's environment is %q", got)
	}
}

// Switches of engines that print nothing of them: a claim of the command, whose flags differ between the arms.
func TestPeers(t *testing.T) {
	for name, want := range map[string]string{"atom": "--fake-eplb", "sglang": "SGLANG_SIMULATE_ROUND_ROBIN_EXPERTS=1",
		"lightllm": "--enable_ep_fake_balance", "vllm-ascend": "VLLM_ASCEND_ENABLE_W4A8_MXFP_FORCE_LOAD_BALANCE=1",
		"lmdeploy": "LMDEPLOY_FAKE_EPLB=true", "vllm": "VLLM_MOE_ROUTING_SIMULATION_STRATEGY=uniform_random"} {
		peer, err := ParseTreatment(name)
		s := Spec{Treatment: peer, Command: Command{Normal: []string{"serve"}}}
		if err != nil || peer.Check() != nil || s.Undeclared() != "" {
			t.Errorf("%s: %v, %v, %s", name, err, peer.Check(), s.Undeclared())
		}
		for _, arm := range gain.Arms {
			r := s.rules().OfArm(arm, []proof.Launch{{}})[0]
			if r.Grade != gain.Claimed || !strings.Contains(r.Evidence, want) {
				t.Errorf("%s, %s: %+v, want %s", name, arm, r, want)
			}
		}
		a, err := ParseArm("even=peer:" + name)
		alone, wrong := ParseArm("peer:" + name)
		if err != nil || wrong != nil || len(a.Env)+len(a.Flags) != 1 || string(alone.Name) != name || len(alone.Env) != len(a.Env) {
			t.Errorf("%s: %+v, %v; %+v, %v", name, a, err, alone, wrong)
		}
	}
	if _, err := ParseArm("even=peer:nobody"); err == nil {
		t.Error("an unknown peer passed")
	}
}
