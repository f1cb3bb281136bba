package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/bench/points"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/testdata/require"
)

func TestParseArm(t *testing.T) {
	a, err := ParseArm(`balancer=EPLB=1 X='a b' --redundant 32 --place=greedy`)
	if err != nil || a.Name != "balancer" || a.Env["EPLB"] != "1" || a.Env["X"] != "a b" ||
		!slices.Equal(a.Flags, []string{"--redundant", "32", "--place=greedy"}) {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err = ParseArm("r=target:1.2"); err != nil || a.Env[routerVariable] != "target:1.2" {
		t.Errorf("%+v, %v", a, err)
	}
	before, _ := ParseArm("0.5")
	if names := BuildsOf([]ArmSpec{before, a}); names != (gain.Builds{"0.5", "r"}) {
		t.Errorf("builds %v", names)
	}
	if names := BuildsOf([]ArmSpec{a, a}); names.Named() {
		t.Errorf("builds %v of two routers", names)
	}
	for _, s := range []string{"", "=X=1", "a b=X=1", "../x=X=1", "balancer=greedy", "balancer='", "r=target:1",
		"r=target:0.5", "r=target:x", "r=perfect", "r=1.2", "normal=X=1", "perfect"} {
		if _, err := ParseArm(s); err == nil {
			t.Errorf("arm %q passed", s)
		}
	}
}

// pointSpec is testSpec with points c at 1, 8 and 64.
func pointSpec(pairs int, args ...string) Spec {
	s := testSpec(pairs, args...)
	p := require.Value(points.Parse("c=1,8,64"))
	s.Points = &p
	return s
}

func gains(c *Campaign) gain.Result { return gain.Judge(Recorded(c)) }

// The fake engine gains c/64 − 1/32 at point c, exactly.
func TestOfflinePoints(t *testing.T) {
	c := create(t, pointSpec(6, "{c}"))
	require.NoError(t, c.Run(context.Background(), testHost("point")))
	wantCurve(t, gains(c))
}

func wantCurve(t *testing.T, r gain.Result) {
	t.Helper()
	if len(r.Points) != 3 || len(r.Pairs) != 18 || r.Verdict != gain.Significant {
		t.Fatalf("verdict %s, %d points, %d pairs: %q", r.Verdict, len(r.Points), len(r.Pairs), because(r))
	}
	for i, want := range []float64{1. / 64, 8. / 64, 64. / 64} {
		if p := r.Points[i]; p.Gain.N != 6 || !(float64(p.Gain.Estimate) > want-1./32-1e-9 &&
			float64(p.Gain.Estimate) < want-1./32+1e-9) {
			t.Errorf("point %+v, want a gain of %v", p, want-1./32)
		}
	}
}

// A server is started once per launch, its client once per point, and both logs are kept
// apart.
func serverSpec(t *testing.T, pairs int, log string) Spec {
	t.Helper()
	addr := freeAddress(t)
	s := pointSpec(pairs)
	self := s.Command.Normal[0]
	s.Command = Command{
		Server: []string{"/usr/bin/env", childVariable + "=server", self, addr}, Ready: "http://" + addr + "/health",
		Normal: []string{self, log, "http://" + addr + "/bench?c={c}", "{c}", "{launch}", "{out}"},
	}
	return s
}

func TestPointsOfAServer(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	c := create(t, serverSpec(t, 6, log))
	if len(c.Launches) != 12 {
		t.Fatalf("%d launches, want 12: one server for all points", len(c.Launches))
	}
	require.NoError(t, c.Run(context.Background(), testHost("point-client")))
	wantCurve(t, gains(c))
	text, _ := os.ReadFile(log)
	runs := strings.Split(strings.TrimSpace(string(text)), "\n")
	for i := 0; i < len(runs); i += 6 { // both launches of a pair in one order
		for j := range 3 {
			if a, b := strings.Fields(runs[i+j])[0], strings.Fields(runs[i+3+j])[0]; a != b {
				t.Errorf("pair %d: %q against %q", i/6, runs[i:i+3], runs[i+3:i+6])
			}
		}
	}
	if found, _ := filepath.Glob(filepath.Join(c.Folder, "launches/*-perfect-1/point-8/stdout.log")); len(found) != 6 {
		t.Errorf("%q by arm, want 6", found) // the client saw other names
	}
	c.Spec.Command.Normal = append(c.Spec.Command.Normal, "{arm}") // as two builds may
	if said := fmt.Sprint(Recorded(c).Checks); !strings.Contains(said, "the client is told its arm") {
		t.Error(said)
	}
}

// A further arm has its variables and flags, the learned router, and a place in each pair.
func TestThreeArms(t *testing.T) {
	s := testSpec(6, "-")
	a, _ := ParseArm("balancer=BENCH_TEST_GAIN=0.04 --n 32")
	s.Arms = []ArmSpec{a}
	c := create(t, s)
	require.NoError(t, c.Run(context.Background(), testHost("point")))
	r := gains(c)
	if r.Curved() { // no launch holds all arms
		t.Errorf("a line of time over load: %+v", r.Comparisons[0].Dose)
	}
	if r.Verdict != gain.Significant || !(r.Comparisons[1].Share.Estimate > 0.1 && r.Comparisons[1].Share.Estimate < 0.9) {
		t.Errorf("verdict %s, share %+v: %q", r.Verdict, r.Comparisons[1], because(r))
	}
	for _, l := range c.Launches {
		last, _ := l.Done()
		words := strings.Join(last.Arguments[1:], " ")
		if want := map[gain.Arm]string{gain.Normal: "-", gain.Perfect: "-", "balancer": "- --n 32"}[l.Arm]; words != want {
			t.Errorf("the %s arm ran with %q", l.Arm, words)
		}
		if _, set := last.Environment["ENABLE_PERFECT_ROUTER"]; set != (l.Arm == gain.Perfect) {
			t.Errorf("the %s arm ran with the environment %v", l.Arm, last.Environment)
		}
	}
}
