package workload

import (
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats"

	"github.com/moebalance/moebalance/router"
)

// small is a configuration that runs in milliseconds.
func small() Config {
	return Config{
		Gate:   router.Gate{Method: router.Renormalize, Shape: router.Shape{Experts: 12, TopK: 3}},
		Hidden: 20, Intermediate: 28, Layers: 3, Ranks: 3, Tokens: 37, Steps: 2, Warmup: 1,
		Skew: 1, Seed: 4,
	}
}

// flat are balanced logits by the simplest plan: slot n of rank r goes to rank
// n+r mod R, and on that rank to the experts in turn.
func flat(c Config) func(int) ([]float32, error) {
	return func(rank int) ([]float32, error) {
		own := c.Gate.Shape.Experts / c.Ranks
		out := make([]float32, c.Tokens*c.Gate.Shape.Experts)
		for i := range out {
			out[i] = -10
		}
		for n := range c.Tokens * c.Gate.Shape.TopK {
			to := (n + rank) % c.Ranks
			e := to*own + n/c.Ranks%own
			out[n/c.Gate.Shape.TopK*c.Gate.Shape.Experts+e] = 10
		}
		return out, nil
	}
}

func TestParallelRunEqualsSerialReference(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"plain":    func(*Config) {},
		"one rank": func(c *Config) { c.Ranks = 1 },
		"uneven":   func(c *Config) { c.Ranks = 5 },
		"balanced": func(c *Config) { c.Balanced = flat(*c) },
		"wide":     func(c *Config) { c.Hidden, c.Intermediate, c.Tokens = 200, 210, 70 },
		"grouped": func(c *Config) {
			c.Gate.Method, c.Gate.Shape = router.DeepSeekV3, router.Shape{Experts: 12, TopK: 3, Groups: 4,
				TopKGroups: 2}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := small()
			c.Steps, c.Warmup = 1, 0
			change(&c)
			l, err := newLaunch(c)
			if err != nil {
				t.Fatal(err)
			}
			want := reference(t, l)
			if _, err := l.run(context.Background()); err != nil {
				t.Fatal(err)
			}
			for r, rank := range l.ranks {
				for i, v := range rank.hidden {
					if d := math.Abs(float64(v) - want[r][i]); !(d < 1e-3) {
						t.Fatalf("rank %d, token %d, channel %d: %v, the reference has %v", r, i/c.Hidden, i%c.Hidden,
							v, want[r][i])
					}
				}
			}
		})
	}
}

// reference computes the hidden states after step 0 with one token at a time,
// in double precision, in nested loops, without ranks or buffers.
func reference(t *testing.T, l *launch) [][]float64 {
	c := l.m.c
	out := make([][]float64, c.Ranks)
	for r := range out {
		start := make([]float32, c.Tokens*c.Hidden)
		l.m.embed(start, 0, r)
		for token := range c.Tokens {
			h := make([]float64, c.Hidden)
			for i := range h {
				h[i] = float64(start[token*c.Hidden+i])
			}
			for _, layer := range l.m.layers {
				x := referenceNorm(h)
				logits := make([]float32, c.Gate.Shape.Experts)
				for e := range logits {
					logits[e] = float32(dot(layer.gate[e*c.Hidden:(e+1)*c.Hidden], x) + float64(layer.bias[e]))
				}
				if c.Balanced != nil {
					copy(logits, l.ranks[r].balanced[token*c.Gate.Shape.Experts:])
				}
				ids, weights := make([]int32, c.Gate.Shape.TopK), make([]float32, c.Gate.Shape.TopK)
				if err := l.ranks[r].router.Route(logits, ids, weights); err != nil {
					t.Fatal(err)
				}
				for s, e := range ids {
					for i, y := range referenceExpert(layer.experts[e], x, c.Intermediate) {
						h[i] += float64(weights[s]) * y
					}
				}
			}
			out[r] = append(out[r], h...)
		}
	}
	return out
}

func referenceNorm(h []float64) []float64 {
	var squares float64
	for _, v := range h {
		squares += v * v
	}
	x := make([]float64, len(h))
	for i, v := range h {
		x[i] = v / math.Sqrt(squares/float64(len(h))+1e-6)
	}
	return x
}

func referenceExpert(x expert, in []float64, intermediate int) []float64 {
	n := len(in)
	inner := make([]float64, intermediate)
	for i := range inner {
		inner[i] = dot(x.up[i*n:(i+1)*n], in)
		g := dot(x.gate[i*n:(i+1)*n], in)
		inner[i] *= g / (1 + math.Exp(-g))
	}
	out := make([]float64, n)
	for i := range out {
		out[i] = dot(x.down[i*intermediate:(i+1)*intermediate], inner)
	}
	return out
}

func dot(w []float32, x []float64) float64 {
	var sum float64
	for i, v := range w {
		sum += float64(v) * x[i]
	}
	return sum
}

func TestEverySlotIsCountedOnce(t *testing.T) {
	c := small()
	c.Record = true
	res, err := Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	want := int64(c.Ranks * c.Tokens * c.Gate.Shape.TopK * c.Steps)
	for l, ranks := range res.RankSlots {
		var sum int64
		for _, n := range ranks {
			sum += n
		}
		if sum != want {
			t.Errorf("layer %d: %d slots over the ranks, want T·k·ranks·steps = %d", l, sum, want)
		}
	}
	if len(res.statistics) != c.Steps {
		t.Fatalf("%d steps recorded, want %d", len(res.statistics), c.Steps)
	}
	for step, layers := range res.statistics {
		for l, ranks := range layers {
			for r, counts := range ranks {
				if n := (router.Load{PerExpert: counts}).Total(); n != int64(c.Tokens*c.Gate.Shape.TopK) {
					t.Errorf("step %d, layer %d: rank %d issued %d slots, want T·k = %d", step, l, r, n,
						c.Tokens*c.Gate.Shape.TopK)
				}
			}
		}
	}
	if len(res.IterationMS) != c.Steps || res.InputTokens != int64(c.Ranks*c.Tokens*c.Steps) {
		t.Errorf("%d step times and %d tokens", len(res.IterationMS), res.InputTokens)
	}
}

func TestOnlyBalancedLogitsReachTheFloor(t *testing.T) {
	c := small() // 37·3·3 = 333 slots: 27.75 per expert, 111 per rank
	normal, err := Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	c.Balanced = flat(c)
	perfect, err := Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	if !perfect.PerfectRouter || normal.PerfectRouter {
		t.Error("the arms are mixed up")
	}
	for l := range c.Layers {
		if normal.RankMaxOverMean[l] < 1.05 || normal.ExpertMaxOverMean[l] < 2 {
			t.Errorf("normal arm, layer %d: ranks %.3f, experts %.3f: too even", l, normal.RankMaxOverMean[l],
				normal.ExpertMaxOverMean[l])
		}
		if perfect.RankMaxOverMean[l] != perfect.RankFloor || perfect.RankFloor != 1 {
			t.Errorf("perfect arm, layer %d: ranks %.3f, floor %.3f", l, perfect.RankMaxOverMean[l], perfect.RankFloor)
		}
	}
}

func TestRoutingIsDeterministic(t *testing.T) {
	c := small()
	c.Record = true
	var first Result
	for i := range 3 {
		res, err := Run(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = res
		} else if !reflect.DeepEqual(res.statistics, first.statistics) {
			t.Fatal("the same seed gave other counts")
		}
	}
	c.Seed++
	if res, err := Run(context.Background(), c); err != nil || reflect.DeepEqual(res.statistics, first.statistics) {
		t.Errorf("another seed gave the same counts (error %v)", err)
	}
}

// A rank is either working or waiting, and both fill the step: the slowest rank of a phase
// does not wait.
func TestWorkAndWaitFillTheStep(t *testing.T) {
	c := small()
	c.Hidden, c.Intermediate = 128, 256
	res, err := Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	for r := range c.Ranks {
		sum := res.DispatchMS[r] + res.DispatchWaitMS[r] + res.ExpertsMS[r] + res.ExpertsWaitMS[r] + res.CombineMS[r] +
			res.CombineWaitMS[r]
		if sum <= 0 || math.Abs(sum-res.StepMS) > 1e-9*res.StepMS {
			t.Errorf("rank %d: %.6f ms of work and waiting in a step of %.6f ms", r, sum, res.StepMS)
		}
		if res.ExpertsMS[r] <= 0 || res.ExpertsWaitMS[r] < 0 {
			t.Errorf("rank %d: experts %.3f ms, wait %.3f ms", r, res.ExpertsMS[r], res.ExpertsWaitMS[r])
		}
	}
}

// By the processor clock the time of the experts follows the load, on a busy
// machine too: a rank with twice the slots works about twice as long.
func TestProcessorTimeFollowsLoad(t *testing.T) {
	if clock != "cpu" {
		t.Skip("this system does not tell the processor time of a thread")
	}
	c := small()
	c.Gate.Shape = router.Shape{Experts: 4, TopK: 1}
	c.Hidden, c.Intermediate, c.Layers, c.Ranks, c.Tokens, c.Steps = 128, 256, 1, 2, 128, 40
	// Two of three tokens go to rank 0, the third to rank 1.
	c.Balanced = func(int) ([]float32, error) {
		rows := make([]float32, c.Tokens*4)
		for token := range c.Tokens {
			rows[token*4+[]int{0, 1, 2}[token%3]] = 5
		}
		return rows, nil
	}
	res, err := Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	// 86 of 128 tokens: 43 + 43 on experts 0 and 1, 42 on expert 2.
	load := float64(res.RankSlots[0][0]) / float64(res.RankSlots[0][1])
	time := res.ExpertsMS[0] / res.ExpertsMS[1]
	if math.Abs(load-86.0/42) > 1e-12 || time < 0.7*load || time > 1.4*load {
		t.Errorf("rank 0 has %.3f times the load and %.3f times the time of rank 1", load, time)
	}
}

func TestRunStopsWhenTheContextEnds(t *testing.T) {
	c := small()
	c.Steps = 1 << 20
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer stop()
	if _, err := Run(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want %v", err, context.DeadlineExceeded)
	}
}

func TestRunRefuses(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no experts":       func(c *Config) { c.Gate.Shape.Experts = 0 },
		"more ranks":       func(c *Config) { c.Ranks = 13 },
		"no tokens":        func(c *Config) { c.Tokens = 0 },
		"no steps":         func(c *Config) { c.Steps = 0 },
		"negative warm-up": func(c *Config) { c.Warmup = -1 },
		"skew":             func(c *Config) { c.Skew = math.NaN() },
		"method":           func(c *Config) { c.Gate.Method = "coin" },
		"too large":        func(c *Config) { c.Hidden, c.Intermediate, c.Layers = 1<<16, 1<<16, 1<<10 },
		"logits of no shape": func(c *Config) {
			c.Balanced = func(int) ([]float32, error) {
				return make([]float32, 5),
					nil
			}
		},
		"undefined logits": func(c *Config) {
			c.Balanced = func(int) ([]float32, error) {
				bad := make([]float32, c.Tokens*c.Gate.Shape.Experts)
				bad[7] = float32(math.NaN())
				return bad, nil
			}
		},
	} {
		c := small()
		change(&c)
		if _, err := Run(context.Background(), c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A placement changes where experts run, and nothing else: the same slots in all.
func TestPlacement(t *testing.T) {
	c := small()
	c.Skew, c.Steps = 1.5, 4
	placed := c
	for range c.Layers {
		held := make([][]int32, c.Ranks) // the experts by turns
		for e := range c.Gate.Shape.Experts {
			held[e%c.Ranks] = append(held[e%c.Ranks], int32(e))
		}
		layout, err := router.Placed(c.Gate.Shape.Experts, held)
		if err != nil {
			t.Fatal(err)
		}
		placed.Layouts = append(placed.Layouts, layout)
	}
	plain, err := Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	turns, err := Run(context.Background(), placed)
	if err != nil {
		t.Fatal(err)
	}
	for l := range plain.RankSlots {
		var a, b int64
		for r := range plain.RankSlots[l] {
			a, b = a+plain.RankSlots[l][r], b+turns.RankSlots[l][r]
		}
		if a != b || turns.ExpertMaxOverMean[l] != plain.ExpertMaxOverMean[l] {
			t.Errorf("layer %d: %d slots, experts %v; want %d and %v", l, b, turns.ExpertMaxOverMean[l], a,
				plain.ExpertMaxOverMean[l])
		}
		if reflect.DeepEqual(turns.RankSlots[l], plain.RankSlots[l]) {
			t.Errorf("layer %d: %v, want other ranks to have the slots", l, turns.RankSlots[l])
		}
	}
	// Those of all steps and layers are the time of the ranks in experts.
	total := make([]float64, len(plain.ExpertsMS))
	for _, step := range plain.StepExpertsMS {
		for _, ranks := range step {
			floats.AddScaled(total, 1/float64(plain.Steps), ranks)
		}
	}
	if len(plain.StepExpertsMS) != plain.Steps || !floats.EqualApprox(total, plain.ExpertsMS, 1e-9) ||
		floats.Min(total) <= 0 {
		t.Errorf("experts took %v, want %v", total, plain.ExpertsMS)
	}
	placed.Layouts = placed.Layouts[1:]
	if _, err := Run(context.Background(), placed); err == nil || !strings.Contains(err.Error(), "layers") {
		t.Errorf("a placement of too few layers: %v", err)
	}
}
