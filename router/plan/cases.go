package plan

import "github.com/moebalance/moebalance/router"

// Case is one plan for one problem with as many tokens on every rank.
type Case struct {
	Name          string       `json:"name"`
	Ranks         int          `json:"ranks"`
	TokensPerRank int          `json:"tokens_per_rank"`
	Certificate   *Certificate `json:"certificate"`       // null when the plan refuses
	Refused       string       `json:"refused,omitempty"` // why
}

// CaseOf plans a problem and certifies the plan.
func CaseOf(name string, p Problem, o Options) Case {
	c := Case{Name: name, Ranks: p.Layout.Ranks(), TokensPerRank: p.Tokens[0]}
	made, err := New(name, p, o)
	if err != nil {
		c.Refused = err.Error()
		return c
	}
	c.Certificate = new(Certify(p, made))
	return c
}

// Span is how even a plan is on so many ranks, over all numbers of tokens that were counted.
type Span struct {
	Name    string `json:"name"`
	Ranks   int    `json:"ranks"`
	Counted int    `json:"counted"` // numbers of tokens
	// AtFloors are the numbers of tokens per rank at which ranks, copies and active experts are
	// at their floors.
	AtFloors []int  `json:"at_floors"`
	Invalid  int    `json:"invalid"`           // numbers of tokens at which it is
	Refused  string `json:"refused,omitempty"` // why it refuses, if it does
	// The cases furthest from the floors, by the ratio of what is achieved to the floor; null where
	// nothing was counted.
	Rank   *Worst `json:"rank"`
	Expert *Worst `json:"expert"`
	Active *Worst `json:"active_experts"` // experts with a slot, and the most there can be
	// Every certifies the plan for every number of tokens; null unless it is one table for
	// all of them that ends level.
	Every *Proof `json:"every_tokens"`
}

// Worst is the case of a span that is furthest from a floor.
type Worst struct {
	TokensPerRank int           `json:"tokens_per_rank"`
	Achieved      router.Number `json:"achieved"`
	Floor         router.Number `json:"floor"`
}

// Add counts a plan's case for a problem; the first one names the span.
func (s *Span) Add(c Case, p Problem) {
	if s.Counted == 0 {
		*s = Span{Name: c.Name, Ranks: c.Ranks, AtFloors: []int{}}
		if c.Name == planners[0].name {
			if proof := prove(p); proof.Level && proof.Period > 0 {
				s.Every = &proof
			}
		}
	}
	s.Counted++
	if c.Certificate == nil {
		s.Refused = c.Refused
		return
	}
	of := c.Certificate
	if !of.Valid {
		s.Invalid++
	}
	if of.Optimal {
		s.AtFloors = append(s.AtFloors, c.TokensPerRank)
	}
	s.Rank = s.Rank.further(c.TokensPerRank, of.Rank.MaxOverMean, of.Rank.FloorOverMean)
	s.Expert = s.Expert.further(c.TokensPerRank, of.Expert.MaxOverMean, of.Expert.FloorOverMean)
	s.Active = s.Active.further(c.TokensPerRank, router.Number(of.ActiveExperts), router.Number(of.ActiveExpertsIdeal))
}

// further is the worst case, or another one that is further from its floor.
func (w *Worst) further(tokens int, achieved, floor router.Number) *Worst {
	if other := (Worst{tokens, achieved, floor}); w == nil || other.off() > w.off() {
		return &other
	}
	return w
}

// off is how far a case is from its floor, at least 1.
func (w Worst) off() router.Number { return max(w.Achieved/w.Floor, w.Floor/w.Achieved) }
