package metrics

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// The first ten full decode steps, or the first tenth where they are fewer than 100, are warm-up.
func TestSteadyByHand(t *testing.T) {
	decode := func(n int, requests router.OptInt) (steps []step) {
		for range n {
			steps = append(steps, step{requests: requests, ms: router.Number(requests)})
		}
		return steps
	}
	prefill := step{requests: 9, prompt: 512, ms: 50}
	// filling up, 21 full steps with a prompt between them, running empty
	mixed := slices.Concat([]step{prefill}, decode(1, 3), decode(20, 4),
		[]step{prefill, {requests: 4, prompt: 7}}, decode(1, 4), decode(5, 2))
	for want, rows := range map[int][]step{19: mixed, 490: decode(500, 8), 90: decode(99, 8), 9: decode(9, 8), 0: {prefill}} {
		full := steady(rows)
		if len(full) != want || slices.ContainsFunc(full, func(s step) bool { return s.prompt != 0 || s.requests < 4 }) {
			t.Errorf("%d steady steps, want %d: %+v", len(full), want, full)
		}
	}
}

// Lines of SGLang have no numbers of iterations, and a unit that is none is no time.
func TestRowsWithoutTimes(t *testing.T) {
	for _, text := range []string{"[2026-04-10 15:39:20 DP1 TP1 EP1] Decode batch, #running-req: 32, gen throughput (token/s): None\n",
		"iter = 7, host_step_time = 12furlongs, states = {'num_ctx_tokens': 0, 'num_generation_tokens': 4}\n",
		`{"Active Request Count":4,"Context Requests":0,"Iteration Counter":7,"Timestamp":"12-18-2023 03:35:37"}` + "\n"} {
		r, err := Parse("server.log", strings.NewReader(text), nil)
		all := strings.Join(r.Warnings, "\n")
		if len(r.Metrics) > 0 || strings.Contains(fmt.Sprint(all, err), "--iterations") == strings.Contains(text, "#running") {
			t.Errorf("%.40s: %+v, %v", text, r, err)
		}
	}
}

// Attention is as uneven as the tokens of ranks in the iterations that all logged: one that alternates does not cancel.
func TestUnevenAttention(t *testing.T) {
	for _, c := range []struct {
		ranks [][]router.OptInt // tokens by rank and iteration
		want  float64
	}{
		{[][]router.OptInt{{32, 32}, {1, 1}}, 128.0/66 - 1}, {[][]router.OptInt{{4, 1}, {1, 4}}, 8.0/5 - 1},
		{[][]router.OptInt{{8, 8}, {8, 8}}, 0}, {[][]router.OptInt{{8, 90}, {8}}, 0}, {[][]router.OptInt{{8, 90}}, 0}, {nil, 0},
	} {
		log := iterationLog{ranks: map[router.OptInt][]step{}}
		for rank, tokens := range c.ranks {
			for i, n := range tokens {
				log.ranks[router.OptInt(rank)] = append(log.ranks[router.OptInt(rank)], step{iter: router.OptInt(i), prompt: n - 1, requests: 1})
			}
		}
		if have := log.uneven(); math.Abs(have-c.want) > 1e-12 {
			t.Errorf("%v: have %v, want %v", c.ranks, have, c.want)
		}
	}
}
