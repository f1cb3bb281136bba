package logits

import (
	"sync"

	"github.com/moebalance/moebalance/router"
)

// plans keeps plans for all who need one: making it can cost as much as filling
// every rank once. The zero value is ready, also for several goroutines.
type plans struct {
	mu   sync.Mutex
	made map[planKey]func() (router.Plan, error)
}

type planKey struct {
	family string // of entries; "" where there is one only
	tokens int
}

// of returns the spec's plan for a batch size. Those who ask for one that is
// being made wait for it; others do not.
func (p *plans) of(family string, s Spec, tokens int) (router.Plan, error) {
	key := planKey{family, tokens}
	p.mu.Lock()
	if p.made == nil {
		p.made = map[planKey]func() (router.Plan, error){}
	}
	plan, ok := p.made[key]
	if !ok {
		plan = sync.OnceValues(func() (router.Plan, error) { return s.plan(tokens) })
		p.made[key] = plan
	}
	p.mu.Unlock()
	return plan()
}

// floors are the least max/mean over experts and over ranks that any plan can
// reach where ranks own unequally many experts, or copies of them. They are the
// problem's own, so the certificate of the cheapest plan states them too.
func floors(p router.Problem) (expert, rank router.Number, err error) {
	c, err := router.Certify(p, samePlan(p.Shape.TopK))
	return c.Expert.FloorOverMean, c.Rank.FloorOverMean, err
}

// samePlan gives every token the first k experts.
type samePlan int

func (samePlan) Name() string { return "same/1" }

func (k samePlan) Fill(dst []int32, _ int) {
	for i := range dst {
		dst[i] = int32(i % int(k))
	}
}
