package plan

import (
	"slices"

	"github.com/moebalance/moebalance/router"
)

// Proof is the certificate of a table for every number of tokens, as many on every
// rank: counted after each row, against the floors of as many tokens.
type Proof struct {
	Rows   int `json:"rows"`
	Period int `json:"period"` // steps after which the table is level; 0 if not known
	// Level is that all experts have had equally many slots after the last row. More
	// tokens than rows then add whole tables, which move loads and floors alike: what
	// is said of the rows holds for every number of tokens.
	Level  bool   `json:"level"`
	Rank   Misses `json:"rank"`
	Copy   Misses `json:"copy"` // of experts; experts without replicas
	Active Misses `json:"active_experts"`
	// Valid is that no token has an expert twice or too many groups.
	Valid bool `json:"valid"`
}

// Optimal is that ranks, copies and active experts are at their floors for every
// number of tokens.
func (p Proof) Optimal() bool {
	return p.Valid && p.Level && p.Rank.Tokens+p.Copy.Tokens+p.Active.Tokens == 0
}

// Misses says for how many numbers of tokens, from 1 to Rows, a floor is missed,
// and by how many slots or experts at most.
type Misses struct {
	Tokens int   `json:"tokens"`
	Worst  int64 `json:"worst"`
}

func (m *Misses) add(off int64) {
	if off > 0 {
		m.Tokens++
		m.Worst = max(m.Worst, off)
	}
}

// prove counts the whole table of a valid problem, whose tokens do not matter.
func prove(p Problem) Proof {
	p.Tokens = make([]int, p.Layout.Ranks())
	t, row := newTable(p), make([]int32, p.Shape.TopK)
	return ProveRows(p, t.rows, t.period, func(source, token int) []int32 {
		t.fill(row, source, token)
		return row
	})
}

// ProveRows is the proof of a table that is given by its rows: the experts of a token of
// each source. In tep mode there is one source.
func ProveRows(p Problem, rows, period int, row func(source, token int) []int32) Proof {
	proof := Proof{Rows: rows, Period: period, Valid: true}
	p.Tokens = make([]int, p.Layout.Ranks())
	t := counter{Problem: p, Load: router.NewLoad(p.Shape.Experts)}
	for token := range rows {
		for s := range p.sources() {
			t.add(row(s, token))
		}
		for r := range p.Tokens {
			p.Tokens[r]++
		}
		c := t.certificate()
		proof.Rank.add(c.Rank.Excess)
		proof.Copy.add(c.Copy.Excess)
		proof.Active.add(int64(c.ActiveExpertsIdeal - c.ActiveExperts))
		proof.Valid = c.Valid
	}
	proof.Level = slices.Min(t.PerExpert) == slices.Max(t.PerExpert)
	return proof
}
