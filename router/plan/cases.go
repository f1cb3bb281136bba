package plan

import (
	"slices"

	"github.com/moebalance/moebalance/router"
)

// Case is one plan for one problem.
type Case struct {
	Name          string        `json:"name"`
	Ranks         int           `json:"ranks"`
	TokensPerRank router.Number `json:"tokens_per_rank"`           // null where ranks differ
	TokensOfRanks []int         `json:"tokens_of_ranks,omitempty"` // only where they do, by rank
	Certificate   *Certificate  `json:"certificate"`               // null when the plan refuses
	Refused       string        `json:"refused,omitempty"`         // why
}

// CaseOf plans a problem and certifies the plan.
func CaseOf(name string, p Problem, o Options) Case {
	c := Case{Name: name, Ranks: p.Layout.Ranks(), TokensPerRank: router.Number(p.Tokens[0])}
	if slices.Min(p.Tokens) != slices.Max(p.Tokens) {
		c.TokensPerRank, c.TokensOfRanks = router.Undefined(), p.Tokens
	}
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

// EveryTokens is the certificate of a plan for every number of tokens per rank.
type EveryTokens struct {
	Name  string `json:"name"`
	Ranks int    `json:"ranks"`
	Proof
}

// Certificates certify the plans that are one table for any number of tokens, once for each
// number of ranks, where the table has a period that proves it.
func Certificates(names []string, problems []Problem) (list []EveryTokens) {
	for _, name := range names {
		ranks := 0
		for _, p := range problems {
			if p.Layout.Ranks() == ranks || !AnyTokens(name) || NewTable(p).Period() == 0 {
				continue
			}
			ranks = p.Layout.Ranks()
			if proof := Prove(p); proof.Level {
				list = append(list, EveryTokens{Name: name, Ranks: ranks, Proof: proof})
			}
		}
	}
	return list
}
