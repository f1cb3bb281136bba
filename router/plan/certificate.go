package plan

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/moebalance/moebalance/router"
)

// Certificate says how good a plan is: what it achieves, counted from every
// token of every rank, beside a floor that no assignment can beat. It is a
// proof by arithmetic, not a promise by the planner.
type Certificate struct {
	Plan  string      `json:"plan"`
	Mode  router.Mode `json:"mode"`
	Ranks int         `json:"ranks"`
	// Tokens is N, the different tokens of all ranks together; Slots is N·k.
	Tokens int64 `json:"tokens"`
	Slots  int64 `json:"slots"`

	Rank   Level `json:"rank"`   // slots per rank
	Expert Level `json:"expert"` // slots per logical expert
	// Copy is slots per copy of an expert: what one grouped GEMM of a rank does
	// for it. Without replicas it is Expert.
	Copy Level `json:"copy"`
	// Pair is slots per (source, target) rank pair: of the source that is
	// furthest above its own floor, the row of its targets. Without slots, and in
	// tep mode, where nothing is dispatched, it is all zero and undefined.
	Pair       Level `json:"pair"`
	PairSource int   `json:"pair_source"` // that source; −1 without any

	ActiveExperts      int `json:"active_experts"`       // experts with a slot
	ActiveExpertsIdeal int `json:"active_experts_ideal"` // the most that ranks no busier than these allow (see Floors)

	Groups      int `json:"groups"`       // most groups one token uses; 1 without groups
	GroupsLimit int `json:"groups_limit"` // how many it may use; 1 without groups

	// ReceiverConflict is the most senders that send to one rank in one step,
	// a step being the same slot of the same token of every rank. 1 is best; 0
	// without slots and in tep mode.
	ReceiverConflict int `json:"receiver_conflict"`

	Duplicates    int64 `json:"duplicates"`    // slots whose expert the token had already
	Disagreements int64 `json:"disagreements"` // tep only: slots in which a rank differs from rank 0

	// Optimal is that ranks, copies and active experts are at their floors, every
	// pair is at its own, and the plan is valid. Receiver conflicts do not count:
	// they are about time, not load. Nor do logical experts where they have
	// replicas, since even ranks give an expert more slots the more copies it has.
	Optimal bool `json:"optimal"`
	// Valid is that no token has an expert twice or too many groups, and that
	// ranks which hold the same tokens agree about them.
	Valid bool `json:"valid"`
}

// MarshalJSON writes what is said of senders as null where nobody sends: without
// slots, and in tep mode.
func (c Certificate) MarshalJSON() ([]byte, error) {
	type plain Certificate
	if c.PairSource >= 0 {
		return json.Marshal(plain(c))
	}
	return json.Marshal(struct {
		plain
		Pair             *Level `json:"pair"`
		PairSource       *int   `json:"pair_source"`
		ReceiverConflict *int   `json:"receiver_conflict"`
	}{plain: plain(c)})
}

// Level is the load of one kind of part: achieved beside the floor, in slots.
type Level struct {
	Max    int64 `json:"max"`
	Min    int64 `json:"min"`
	Floor  int64 `json:"floor"`  // no assignment has a smaller Max; of copies and experts: none without a busier rank (see Floors)
	Excess int64 `json:"excess"` // Max − Floor: 0 is optimal; less only where the plan is invalid

	MaxOverMean router.Number `json:"max_over_mean"`
	// FloorOverMean is what MaxOverMean would be at the floor.
	FloorOverMean router.Number `json:"floor_over_mean"`
}

// Spread is Max − Min.
func (l Level) Spread() int64 { return l.Max - l.Min }

func levelOf(parts []int64, floor int64) Level {
	l := Level{Floor: floor, Min: parts[0]}
	var total int64
	for _, n := range parts {
		l.Max, l.Min = max(l.Max, n), min(l.Min, n)
		total += n
	}
	l.Excess = l.Max - floor
	l.MaxOverMean, l.FloorOverMean = router.OverMean(l.Max, total, len(parts)), router.OverMean(floor, total, len(parts))
	return l
}

// Certify counts a plan and holds it against the floors (see bounds). Ranks are
// filled one after the other; besides one rank's ids it keeps E + R² counts and,
// for receiver conflicts, two bytes per step and rank. An id outside the experts
// is an error.
//
// With replicas the slots of an expert go to its copies in turn, source after
// source, as Layout.RankLoad counts them.
func Certify(p Problem, plan Plan) (Certificate, error) {
	if err := p.Validate(); err != nil {
		return Certificate{}, fmt.Errorf("certifying a plan: %w", err)
	}
	t := newCounter(p)
	for rank, tokens := range p.Tokens {
		ids := slices.Grow(t.ids[:0], tokens*p.Shape.TopK)[:tokens*p.Shape.TopK]
		t.ids = ids
		plan.Fill(ids, rank)
		if err := t.add(ids, rank); err != nil {
			return Certificate{}, fmt.Errorf("certifying plan %s: %w", plan.Name(), err)
		}
	}
	c := t.certificate()
	c.Plan = plan.Name()
	return c, nil
}

// counter counts the slots of a plan.
type counter struct {
	problem   Problem
	ids       []int32 // one rank's
	same      []int32 // rank 0's, in tep mode
	expert    []int64
	pair      []int64  // by source and target
	senders   []uint16 // by step and target
	chosen    []int    // by expert: 1 + the token that has it, counted over all ranks
	opened    []int    // by group: likewise
	token     int
	groups    int
	duplicate int64
	disagree  int64
}

func newCounter(p Problem) *counter {
	ranks := p.Layout.Ranks()
	t := &counter{
		problem: p, expert: make([]int64, p.Shape.Experts), pair: make([]int64, ranks*ranks),
		chosen: make([]int, p.Shape.Experts), opened: make([]int, p.Shape.Experts/p.Shape.GroupSize()),
	}
	if p.Mode == router.DEP {
		t.senders = make([]uint16, slices.Max(p.Tokens)*p.Shape.TopK*ranks)
	}
	return t
}

func (t *counter) add(ids []int32, rank int) error {
	if t.problem.Mode == router.TEP && rank > 0 {
		for i, e := range ids {
			if e != t.same[i] {
				t.disagree++
			}
		}
		return nil
	}
	if t.problem.Mode == router.TEP {
		t.same = append(t.same, ids...)
	}
	ranks, topK, size := t.problem.Layout.Ranks(), t.problem.Shape.TopK, t.problem.Shape.GroupSize()
	for i := 0; i < len(ids); i += topK {
		t.token++
		groups := 0
		for s, e := range ids[i : i+topK] {
			if e < 0 || int(e) >= len(t.expert) {
				return fmt.Errorf("slot %d of token %d on rank %d has expert %d; want 0 to %d", s, i/topK, rank, e, len(t.expert)-1)
			}
			places := t.problem.Layout.Places(int(e))
			target := places[t.expert[e]%int64(len(places))].Rank
			t.expert[e]++
			t.pair[rank*ranks+target]++
			if t.senders != nil {
				t.senders[(i+s)*ranks+target]++
			}
			if t.chosen[e] == t.token {
				t.duplicate++
			}
			t.chosen[e] = t.token
			if g := int(e) / size; t.opened[g] != t.token {
				t.opened[g] = t.token
				groups++
			}
		}
		t.groups = max(t.groups, groups)
	}
	return nil
}

func (t *counter) certificate() Certificate {
	p := t.problem
	ranks := p.Layout.Ranks()
	perRank := make([]int64, ranks)
	for i, n := range t.pair {
		perRank[i%ranks] += n
	}
	f := boundsOf(p, slices.Max(perRank))
	c := Certificate{
		Mode: p.Mode, Ranks: ranks, Tokens: int64(p.total()), Slots: int64(p.total() * p.Shape.TopK),
		Rank: levelOf(perRank, f.rank), Expert: levelOf(t.expert, f.expert), Copy: levelOf(p.Layout.CopyLoad(t.expert), f.copy),
		Groups: t.groups, GroupsLimit: p.Shape.GroupLimit(),
		ActiveExpertsIdeal: int(f.active),
		Duplicates:         t.duplicate, Disagreements: t.disagree,
	}
	for _, n := range t.expert {
		if n > 0 {
			c.ActiveExperts++
		}
	}
	for _, n := range t.senders {
		c.ReceiverConflict = max(c.ReceiverConflict, int(n))
	}
	c.Pair, c.PairSource = t.worstPair(f)
	c.Valid = c.Duplicates == 0 && c.Disagreements == 0 && c.Groups <= c.GroupsLimit
	c.Optimal = c.Valid && c.Rank.Excess <= 0 && c.Copy.Excess <= 0 && c.Pair.Excess <= 0 && c.ActiveExperts >= c.ActiveExpertsIdeal
	return c
}

// worstPair is the row of the source furthest above its floor, the first one on a tie.
func (t *counter) worstPair(f bounds) (Level, int) {
	worst, source := levelOf([]int64{0}, 0), -1
	if t.problem.Mode == router.TEP {
		return worst, source
	}
	ranks := t.problem.Layout.Ranks()
	for s, tokens := range t.problem.Tokens {
		if tokens == 0 {
			continue
		}
		row := levelOf(t.pair[s*ranks:(s+1)*ranks], f.pair(tokens))
		if source < 0 || row.Excess > worst.Excess {
			worst, source = row, s
		}
	}
	return worst, source
}
