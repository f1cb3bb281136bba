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
