package plan

import (
	"slices"

	"github.com/moebalance/moebalance/router"
)

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
	if err == nil {
		var certificate Certificate
		if certificate, err = Certify(p, made); err == nil {
			c.Certificate = &certificate
			return c
		}
	}
	c.Refused = err.Error()
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
	// The cases furthest from the floors, by the ratio of what is achieved to the floor.
	Rank   Worst `json:"rank"`
	Expert Worst `json:"expert"`
	Active Worst `json:"active_experts"` // experts with a slot, and the most there can be
	// Every certifies the plan for every number of tokens; null unless it is one table for
	// all of them that ends level.
	Every *Proof `json:"every_tokens"`
}

// Worst is the case of a span that is furthest from a floor.
type Worst struct {
	TokensPerRank router.OptInt `json:"tokens_per_rank"` // null where nothing was counted
	Achieved      router.Number `json:"achieved"`
	Floor         router.Number `json:"floor"`
}

// off is how far a case is from its floor, at least 1; 0 where nothing was counted.
func (w Worst) off() router.Number {
	if !w.TokensPerRank.Defined() || !w.Floor.Defined() {
		return 0
	}
	return max(w.Achieved/w.Floor, w.Floor/w.Achieved)
}

func (w *Worst) add(tokens int, achieved, floor router.Number) {
	if other := (Worst{router.OptInt(tokens), achieved, floor}); other.off() > w.off() {
		*w = other
	}
}

// Spans sums up the cases of each plan and number of ranks, in their order: 64 cases of one
// plan on 8 ranks are one span. The problems are what the cases solve.
func Spans(cases []Case, problems []Problem) (spans []Span) {
	known := map[Case]int{}
	for _, c := range cases {
		key := Case{Name: c.Name, Ranks: c.Ranks}
		i, ok := known[key]
		if !ok {
			none := Worst{router.NoID, router.Undefined(), router.Undefined()}
			i, known[key] = len(spans), len(spans)
			spans = append(spans, Span{Name: c.Name, Ranks: c.Ranks, AtFloors: []int{}, Rank: none, Expert: none,
				Active: none})
		}
		spans[i].add(c)
	}
	for i, s := range spans {
		of := slices.IndexFunc(problems, func(p Problem) bool { return p.Layout.Ranks() == s.Ranks })
		if s.Name != planners[0].name || of < 0 {
			continue
		}
		if proof := Prove(problems[of]); proof.Level && proof.Period > 0 {
			spans[i].Every = &proof
		}
	}
	return spans
}

func (s *Span) add(c Case) {
	s.Counted++
	if c.Certificate == nil {
		s.Refused = c.Refused
		return
	}
	of := c.Certificate
	if !of.Valid {
		s.Invalid++
	}
	if of.AtFloors() {
		s.AtFloors = append(s.AtFloors, c.TokensPerRank)
	}
	s.Rank.add(c.TokensPerRank, of.Rank.MaxOverMean, of.Rank.FloorOverMean)
	s.Expert.add(c.TokensPerRank, of.Expert.MaxOverMean, of.Expert.FloorOverMean)
	s.Active.add(c.TokensPerRank, router.Number(of.ActiveExperts), router.Number(of.ActiveExpertsIdeal))
}
