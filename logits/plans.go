package logits

import (
	"sync"

	"github.com/moebalance/moebalance/router/plan"
)

// plans keeps plans for all who need one: making it can cost as much as filling
// every rank once. The zero value is ready, also for several goroutines.
type plans struct {
	made sync.Map // from planKey to a function that makes the plan once
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
	making, _ := p.made.LoadOrStore(key, sync.OnceValues(func() (plan.Plan, error) { return s.plan(key.tokens) }))
	return making.(func() (plan.Plan, error))()
}
