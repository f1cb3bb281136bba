package plan

import (
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
	// furthest above its own floor, the row of its targets. Nil without slots, and in
	// tep mode, where nothing is dispatched.
	Pair       *Level        `json:"pair"`
	PairSource router.OptInt `json:"pair_source"` // that source

	ActiveExperts      int `json:"active_experts"`       // experts with a slot
	ActiveExpertsIdeal int `json:"active_experts_ideal"` // the most that ranks no busier than these allow (see Floors)

	Groups      int `json:"groups"`       // most groups one token uses; 1 without groups
	GroupsLimit int `json:"groups_limit"` // how many it may use; 1 without groups

	// ReceiverConflict is the most senders that send to one rank in one step,
	// a step being the same slot of the same token of every rank. 1 is best;
	// undefined without slots and in tep mode.
	ReceiverConflict router.OptInt `json:"receiver_conflict"`

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

// Level is the load of one kind of part: achieved beside the floor, in slots.
type Level struct {
	Max int64 `json:"max"`
	Min int64 `json:"min"`
	// no assignment has a smaller Max; of copies and experts: none without a busier rank (see Floors)
	Floor  int64 `json:"floor"`
	Excess int64 `json:"excess"` // Max − Floor: 0 is optimal; less only where the plan is invalid

	MaxOverMean router.Number `json:"max_over_mean"`
	// FloorOverMean is what MaxOverMean would be at the floor.
	FloorOverMean router.Number `json:"floor_over_mean"`
}

func levelOf(parts []int64, floor int64) Level {
	l := Level{Floor: floor, Min: slices.Min(parts), Max: slices.Max(parts)}
	total := router.Load{PerExpert: parts}.Total()
	l.Excess = l.Max - floor
	l.MaxOverMean, l.FloorOverMean = router.OverMean(l.Max, total, len(parts)),
		router.OverMean(floor, total, len(parts))
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
	t := counter{problem: p, expert: make([]int64, p.Shape.Experts), pair: matrix[int64](len(p.sources()),
		p.Layout.Ranks())}
	if p.Mode == router.DEP {
		t.senders = make([]uint16, slices.Max(p.Tokens)*p.Shape.TopK*p.Layout.Ranks())
	}
	var first, ids []int32
	for rank, tokens := range p.Tokens {
		ids = slices.Grow(ids[:0], tokens*p.Shape.TopK)[:tokens*p.Shape.TopK]
		plan.Fill(ids, rank)
		if p.Mode == router.TEP && rank > 0 {
			for i, e := range ids {
				if e != first[i] {
					t.disagree++
				}
			}
			continue
		}
		if err := t.add(ids, rank); err != nil {
			return Certificate{}, fmt.Errorf("certifying plan %s: %w", plan.Name(), err)
		}
		if p.Mode == router.TEP {
			first, ids = ids, nil
		}
	}
	c := t.certificate()
	c.Plan = plan.Name()
	return c, nil
}

// counter counts the slots of a plan.
type counter struct {
	problem   Problem
	expert    []int64
	pair      [][]int64 // by source and target
	senders   []uint16  // by step and target
	groups    int
	duplicate int64
	disagree  int64
}

func (t *counter) add(ids []int32, source int) error {
	ranks, topK := t.problem.Layout.Ranks(), t.problem.Shape.TopK
	for i, e := range ids {
		if e < 0 || int(e) >= len(t.expert) {
			return fmt.Errorf("slot %d of token %d on rank %d has expert %d; want 0 to %d", i%topK, i/topK, source, e,
				len(t.expert)-1)
		}
		places := t.problem.Layout.Places(int(e))
		target := places[t.expert[e]%int64(len(places))].Rank
		t.expert[e]++
		t.pair[source][target]++
		if t.senders != nil {
			t.senders[i*ranks+target]++
		}
	}
	for token := range slices.Chunk(ids, topK) {
		duplicates, groups := repeatsAndGroups(t.problem.Shape, token)
		t.duplicate += int64(duplicates)
		t.groups = max(t.groups, groups)
	}
	return nil
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
	p := t.problem
	perRank := make([]int64, p.Layout.Ranks())
	for _, row := range t.pair {
		for r, n := range row {
			perRank[r] += n
		}
	}
	f := boundsOf(p, slices.Max(perRank))
	c := Certificate{
		Mode: p.Mode, Ranks: len(perRank), Tokens: int64(p.total()), Slots: int64(p.total() * p.Shape.TopK),
		Rank: levelOf(perRank, f.rank), Expert: levelOf(t.expert, f.expert), Copy: levelOf(p.Layout.CopyLoad(t.expert),
			f.copy),
		ActiveExperts: router.BalanceOf(t.expert).Active, ActiveExpertsIdeal: int(f.active),
		Groups: t.groups, GroupsLimit: p.Shape.GroupLimit(),
		Duplicates: t.duplicate, Disagreements: t.disagree, ReceiverConflict: router.NoID,
	}
	if len(t.senders) > 0 {
		c.ReceiverConflict = router.OptInt(slices.Max(t.senders))
	}
	c.Pair, c.PairSource = t.worstPair(f)
	c.Valid = c.Duplicates == 0 && c.Disagreements == 0 && c.Groups <= c.GroupsLimit
	c.Optimal = c.Valid && c.Rank.Excess <= 0 && c.Copy.Excess <= 0 &&
		(c.Pair == nil || c.Pair.Excess <= 0) && c.ActiveExperts >= c.ActiveExpertsIdeal
	return c
}

// worstPair is the row of the source furthest above its floor, the first one on a tie.
func (t *counter) worstPair(f bounds) (worst *Level, source router.OptInt) {
	source = router.NoID
	for s, tokens := range t.problem.Tokens {
		if tokens == 0 || t.problem.Mode == router.TEP {
			continue
		}
		if row := levelOf(t.pair[s], f.pair(tokens)); worst == nil || row.Excess > worst.Excess {
			worst, source = &row, router.OptInt(s)
		}
	}
	return worst, source
}

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

// Prove counts the whole table of a valid problem, whose tokens do not matter.
func Prove(p Problem) Proof {
	t, row := NewTable(p), make([]int32, p.Shape.TopK)
	return ProveRows(p, t.rows, t.period, func(source, token int) []int32 {
		t.Fill(row, source, token)
		return row
	})
}

// ProveRows is Prove for a table that is given by its rows: the experts of a token of
// each source. In tep mode there is one source.
func ProveRows(p Problem, rows, period int, row func(source, token int) []int32) Proof {
	proof := Proof{Rows: rows, Period: period, Valid: true}
	load := router.NewLoad(p.Shape.Experts)
	p.Tokens = make([]int, p.Layout.Ranks())
	for token := range rows {
		for s := range p.sources() {
			experts := row(s, token)
			load.Add(experts)
			duplicates, groups := repeatsAndGroups(p.Shape, experts)
			proof.Valid = proof.Valid && duplicates == 0 && groups <= p.Shape.GroupLimit()
		}
		for r := range p.Tokens {
			p.Tokens[r]++
		}
		perRank := p.Layout.RankLoad(load.PerExpert)
		f := boundsOf(p, slices.Max(perRank))
		proof.Rank.add(slices.Max(perRank) - f.rank)
		proof.Copy.add(slices.Max(p.Layout.CopyLoad(load.PerExpert)) - f.copy)
		proof.Active.add(f.active - int64(load.Experts().Active))
	}
	proof.Level = slices.Min(load.PerExpert) == slices.Max(load.PerExpert)
	return proof
}

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
