package logits

import (
	"sync"

	"github.com/moebalance/moebalance/router/plan"
)

// keptPlans bounds the plans that a cache keeps.
const keptPlans = 64

// plans keeps plans for all who need one: making it can cost as much as filling
// every rank once. The zero value keeps all of them and is ready, also for
// several goroutines.
type plans struct {
	most  int // to keep, the latest ones; 0 is all
	mu    sync.Mutex
	made  map[planKey]func() (plan.Plan, error)
	order []planKey // of made, the oldest first
}

type planKey struct {
	family string // of entries; "" where there is one only
	tokens int
}

// of returns the spec's plan for so many tokens on every rank. Those who ask for one
// that is being made wait for it; others do not.
func (p *plans) of(family string, s Spec, tokens int) (plan.Plan, error) {
	key := planKey{family, tokens}
	if plan.AnyTokens(s.Plan) {
		key.tokens = 0
	}
	return p.making(key, s)()
}

// making returns what makes the plan, once for all who ask.
func (p *plans) making(key planKey, s Spec) func() (plan.Plan, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.made[key]; ok {
		return known
	}
	if p.made == nil {
		p.made = map[planKey]func() (plan.Plan, error){}
	}
	if p.most > 0 && len(p.order) == p.most {
		delete(p.made, p.order[0])
		p.order = p.order[1:]
	}
	p.made[key] = sync.OnceValues(func() (plan.Plan, error) { return s.plan(key.tokens) })
	p.order = append(p.order, key)
	return p.made[key]
}
