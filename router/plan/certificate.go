package plan

import (
	"slices"

	"github.com/moebalance/moebalance/router"
)

// Certificate says how good a plan is: what it achieves, counted from every
// token of every rank, beside a floor that no assignment can beat. It is a
// proof by arithmetic, not a promise by the planner.
type Certificate struct {
	Rank   Level `json:"rank"`   // slots per rank
	Expert Level `json:"expert"` // slots per logical expert
	// Copy is slots per copy of an expert: what one grouped GEMM of a rank does
	// for it. Without replicas it is Expert.
	Copy               Level `json:"copy"`
	ActiveExperts      int   `json:"active_experts"`       // experts with a slot
	ActiveExpertsIdeal int   `json:"active_experts_ideal"` // the most that ranks no busier than these allow (see bounds)

	Groups        int   `json:"groups"`        // most groups one token uses; 1 without groups
	Duplicates    int64 `json:"duplicates"`    // slots whose expert the token had already
	Disagreements int64 `json:"disagreements"` // tep only: slots in which a rank differs from rank 0

	// Optimal is that ranks, copies and active experts are at their floors, and the plan is valid. Logical
	// experts with replicas do not count, since even ranks give an expert more slots the more copies it has.
	Optimal bool `json:"optimal"`
	// Valid is that no token has an expert twice or too many groups, and that
	// ranks which hold the same tokens agree about them.
	Valid bool `json:"valid"`
}

// Level is the load of one kind of part: achieved beside the floor, in slots.
type Level struct {
	Max int64 `json:"max"`
	// no assignment has a smaller Max; of copies and experts: none without a busier rank (see bounds)
	Floor  int64 `json:"floor"`
	Excess int64 `json:"excess"` // Max − Floor: 0 is optimal; less only where the plan is invalid

	MaxOverMean router.Number `json:"max_over_mean"`
	// FloorOverMean is what MaxOverMean would be at the floor.
	FloorOverMean router.Number `json:"floor_over_mean"`
}

func levelOf(parts []int64, floor int64) Level {
	most, total := slices.Max(parts), router.Load{PerExpert: parts}.Total()
	return Level{Max: most, Floor: floor, Excess: most - floor,
		MaxOverMean: router.OverMean(most, total, len(parts)), FloorOverMean: router.OverMean(floor, total, len(parts))}
}

// Certify counts a plan and holds it against the floors (see bounds). Ranks are
// filled one after the other.
//
// With replicas the slots of an expert go to its copies in turn, source after
// source, as Layout.RankLoad counts them.
func Certify(p Problem, plan Plan) Certificate {
	t := counter{Problem: p, Load: router.NewLoad(p.Shape.Experts)}
	var first []int32
	for rank, tokens := range p.Tokens {
		ids := make([]int32, tokens*p.Shape.TopK)
		plan.Fill(ids, rank)
		if p.Mode != router.TEP || rank == 0 {
			t.add(ids)
			first = ids
			continue
		}
		for i, e := range ids {
			if e != first[i] {
				t.Disagreements++
			}
		}
	}
	return t.certificate()
}

// counter counts the slots of a plan.
type counter struct {
	Problem
	router.Load
	Certificate // as far as it is counted
}

func (t *counter) add(ids []int32) {
	t.Add(ids)
	for token := range slices.Chunk(ids, t.Shape.TopK) {
		duplicates, groups := repeatsAndGroups(t.Shape, token)
		t.Duplicates += int64(duplicates)
		t.Groups = max(t.Groups, groups)
	}
}

// repeatsAndGroups counts the slots of a token whose expert it had already, and its groups.
func repeatsAndGroups(s router.Shape, experts []int32) (duplicates, groups int) {
	size := int32(s.GroupSize())
	for i, e := range experts {
		if slices.Contains(experts[:i], e) {
			duplicates++
		}
		if !slices.ContainsFunc(experts[:i], func(other int32) bool { return other/size == e/size }) {
			groups++
		}
	}
	return duplicates, groups
}

func (t *counter) certificate() Certificate {
	c, perRank := t.Certificate, t.Layout.RankLoad(t.PerExpert)
	f := boundsOf(t.Problem, slices.Max(perRank))
	c.Rank, c.Expert = levelOf(perRank, f.rank), levelOf(t.PerExpert, f.expert)
	c.Copy = levelOf(t.Layout.CopyLoad(t.PerExpert), f.copy)
	c.ActiveExperts, c.ActiveExpertsIdeal = t.Experts().Active, int(f.active)
	c.Valid = c.Duplicates == 0 && c.Disagreements == 0 && c.Groups <= t.Shape.GroupLimit()
	c.Optimal = c.Valid && c.Rank.Excess <= 0 && c.Copy.Excess <= 0 && c.ActiveExperts >= c.ActiveExpertsIdeal
	return c
}
