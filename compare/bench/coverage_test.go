package bench

import (
	"context"
	"flag"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/moebalance/moebalance/compare/bench/control"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/bench/proof"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// noise is what a fake engine adds to the logarithm of a measurement, as standard deviations:
// of a launch, of what a launch adds to the gain, and of a segment.
type noise struct{ launch, interaction, segment float64 }

// channel is a folder in memory, with ranks that answer at once.
type channel struct {
	order control.Order
	acks  []control.Ack
}

func (c *channel) Write(o control.Order) error { c.order = o; return nil }

func (c *channel) Answers(int) ([]control.Ack, int, error) { return c.acks, len(c.acks), nil }

func (c *channel) Read() (control.Order, bool, error) { return c.order, true, nil }
func (c *channel) See(int, int) error                 { return nil }
func (c *channel) Answer(a control.Ack) error         { c.acks = []control.Ack{a}; return nil }

// simulated runs a campaign of fake engines through the driver, the record and the judge; only
// processes, files and clocks are not real.
func simulated(t *testing.T, rng *rand.Rand, launches, blocks int, n noise, gained float64) gain.Result {
	t.Helper()
	hook, err := ParseTreatment("hook")
	if err != nil {
		t.Fatal(err)
	}
	c := &Campaign{Spec: Spec{
		Design: Design{Launches: launches, Blocks: blocks, Seed: rng.Uint64()}, Treatment: hook,
		Command:   Command{Server: []string{"engine"}, Normal: []string{"client", "{seed}"}},
		Threshold: 0.1, Confidence: 0.95, WorkTolerance: 0.01,
	}}
	c.Launches = c.Spec.plan()
	now := time.Unix(0, 0)
	r := runner{Campaign: c, host: Host{Now: func() time.Time { return now }, Sleep: asleep}}
	for i := range c.Launches {
		l := &c.Launches[i]
		l.Attempts = []Attempt{{Number: 1, Session: 1, State: Finished}}
		base, extra := n.launch*rng.NormFloat64(), n.interaction*rng.NormFloat64()
		routed, side := "", &channel{}
		follower := control.Follower{Side: side, Ranks: 1, Set: func(r string) error { routed = r; return nil }}
		s := segments{runner: &r, launch: *l, number: 1}
		s.drivenBy(side, 0)
		s.driver.Run = func(_ context.Context, run control.Run) error {
			if err := follower.Poll(now, 0); err != nil {
				return err
			}
			x := base + n.segment*rng.NormFloat64()
			if routed == control.Perfect {
				x += math.Log1p(gained) + extra
			}
			now = now.Add(10 * time.Second)
			m := metrics.Metric{Metric: gain.Metric{Name: "output_throughput", Unit: "tok/s", HigherIsBetter: true},
				Value: router.Number(1000 * math.Exp(x))}
			s.keep(Segment{Run: run, DurationNS: 1e10, Result: &metrics.Result{Format: "fake", Primary: m.Name,
				Metrics: []metrics.Metric{m}}})
			return nil
		}
		if err := s.driver.Drive(t.Context(), c.Spec.planOf(*l)); err != nil {
			t.Fatal(err)
		}
		for i := range l.Attempts[0].Orders {
			o := &l.Attempts[0].Orders[i]
			even := router.Number(1.5)
			if o.Router == control.Perfect {
				even = 1
			}
			o.Counted = &proof.LoadProof{RankMaxOverMean: even, RankFloor: 1, ExpertMaxOverMean: even, ExpertFloor: 1}
		}
	}
	return gain.Judge(Recorded(c))
}

// asleep never wakes: nobody renews, and nobody waits for ranks that answer at once.
func asleep(ctx context.Context, _ time.Duration) error {
	<-ctx.Done()
	return ctx.Err()
}

var everyCampaign = flag.Bool("coverage", false, "simulate 2,000 campaigns of each cell in place of 500 of one")

// The interval covers the known gain of a fake engine as often as it says, and is as wide as
// the table that chose the statistics has it.
func TestWithinCoverage(t *testing.T) {
	const gained = 0.1
	for i, cell := range []struct {
		launches, blocks int
		noise
		least, most float64 // half-width, points
	}{
		{5, 2, noise{.05, .0055, .015}, 1.2, 1.8},
		{5, 4, noise{.05, .0055, .015}, 0.9, 1.5},
		{5, 2, noise{.03, .0055, .003}, 0.6, 1.1},
		{3, 2, noise{.03, .0055, .003}, 1.1, 2.1},
		{8, 2, noise{.03, .02, .015}, 1.4, 2.4},
	} {
		campaigns, low, high := 500, .9, .99
		if *everyCampaign {
			campaigns, low, high = 2000, .935, .97
		} else if i > 0 {
			break
		}
		rng := rand.New(rand.NewPCG(22, uint64(i)))
		covered, width := 0., 0.
		for range campaigns {
			r := simulated(t, rng, cell.launches, cell.blocks, cell.noise, gained)
			if r.Balance != gain.Measured || r.Gain.N != cell.launches {
				t.Fatalf("balance %s, %+v", r.Balance, r.Gain)
			}
			width += 50 * float64(r.Gain.High-r.Gain.Low) / float64(campaigns)
			if r.Gain.Low <= gained && gained <= r.Gain.High {
				covered += 1 / float64(campaigns)
			}
		}
		t.Logf("%d launches of %d blocks, %+v: covered %.1f %%, half-width %.2f points", cell.launches, cell.blocks,
			cell.noise, 100*covered, width)
		if covered < low || covered > high || width < cell.least || width > cell.most {
			t.Errorf("%+v: covered %.3f, half-width %.2f points", cell, covered, width)
		}
	}
}
