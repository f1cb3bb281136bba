package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/testdata/require"
)

// tiny is a launch that takes milliseconds.
var tiny = []string{"workload", "--experts", "8", "--layers", "2", "--ranks", "2", "--tokens", "32", "--steps", "3"}

func TestWorkloadPrintsOneLineThatParses(t *testing.T) {
	for _, perfect := range []string{"", "0", "true", "1"} {
		t.Setenv(perfectRouterVariable, perfect)
		stdout, stderr, _ := invoke(t.Context(), tiny...)
		if strings.Count(stdout, "\n") != 1 || !json.Valid([]byte(stdout)) {
			t.Fatalf("stdout is not one line of JSON: %q", stdout)
		}
		got := require.Value(metrics.Parse("stdout", strings.NewReader(stdout), nil))
		want := perfect == "1" // and nothing else
		if !got.Proof.Claimed || got.Proof.Perfect != want || got.Proof.Ranks != 2 || len(got.Proof.Layers) != 2 {
			t.Errorf("with %q: proof %+v", perfect, got.Proof)
		}
		for _, l := range got.Proof.Layers {
			if floor := l.RankMaxOverMean == 1 && l.ExpertMaxOverMean == 1; floor != want {
				t.Errorf("with %q: layer %d has %v over ranks and %v over experts", perfect, l.Layer, l.RankMaxOverMean,
					l.ExpertMaxOverMean)
			}
		}
		if n := strings.Count(stderr, "by balanced logits"); (n == 2) != want {
			t.Errorf("with %q: %d ranks say that they use balanced logits: %s", perfect, n, stderr)
		}
		if got.Work[gain.WorkInputTokens] != 2*32*3 {
			t.Errorf("work %+v", got.Work)
		}
	}
}
