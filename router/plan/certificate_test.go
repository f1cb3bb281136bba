package plan

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// listed is a plan written out, to hold the certificate against.
type listed [][]int32

func (l listed) Name() string               { return "listed/1" }
func (l listed) Fill(dst []int32, rank int) { copy(dst, l[rank]) }

// Two ranks, four experts, top-2, and every number counted by hand.
func TestCertificateByHand(t *testing.T) {
	p := problem(t, 4, 2, 0, 0, 2, router.DEP, 2, 1)
	// Rank 0 owns experts 0 1, rank 1 owns 2 3.
	c, err := Certify(p, listed{{0, 1, 0, 2}, {0, 1}})
	if err != nil {
		t.Fatal(err)
	}
	want := Certificate{
		Plan: "listed/1", Mode: router.DEP, Ranks: 2, Tokens: 3, Slots: 6,
		// Ranks get 5 and 1 of 6 slots; 3 each is possible.
		Rank: Level{Max: 5, Min: 1, Floor: 3, Excess: 2, MaxOverMean: 5. / 3, FloorOverMean: 1},
		// Experts 3 2 1 0; ⌈6/4⌉ = 2.
		Expert: Level{Max: 3, Min: 0, Floor: 2, Excess: 1, MaxOverMean: 2, FloorOverMean: 4. / 3},
		Copy:   Level{Max: 3, Min: 0, Floor: 2, Excess: 1, MaxOverMean: 2, FloorOverMean: 4. / 3},
		// Rows 3 1 (floor 2) and 2 0 (floor 1): both one off, the first is told.
		Pair: Level{Max: 3, Min: 1, Floor: 2, Excess: 1, MaxOverMean: 1.5, FloorOverMean: 1}, PairSource: 0,
		ActiveExperts: 3, ActiveExpertsIdeal: 4, Groups: 1, GroupsLimit: 1,
		ReceiverConflict: 2, // step 0: both send to rank 0
		Valid:            true,
	}
	if c != want {
		t.Errorf("certificate\n%+v, want\n%+v", c, want)
	}

	c, err = Certify(p, listed{{0, 2, 1, 1}, {3, 2}})
	if err != nil || c.Duplicates != 1 || c.Valid || c.Optimal {
		t.Errorf("expert 1 twice in a token: %+v, %v", c, err)
	}
	c, err = Certify(p, listed{{0, 2, 1, 3}, {2, 0}})
	if err != nil || !c.Optimal || c.ReceiverConflict != 1 {
		t.Errorf("3 slots per rank, 1 or 2 per expert, rows 2 2 and 1 1: optimal, without conflict; got %+v, %v", c, err)
	}
	if _, err = Certify(p, listed{{0, 2, 1, 4}, {2, 0}}); err == nil || !strings.Contains(err.Error(), "slot 1 of token 1 on rank 0 has expert 4; want 0 to 3") {
		t.Errorf("an expert that is none: %v", err)
	}

	grouped := problem(t, 4, 2, 4, 1, 2, router.DEP, 1)
	grouped.Shape = router.Shape{Experts: 4, TopK: 2, Groups: 2, TopKGroups: 1}
	c, err = Certify(grouped, listed{{0, 1}, {0, 3}})
	if err != nil || c.Groups != 2 || c.GroupsLimit != 1 || c.Valid {
		t.Errorf("experts of two groups where one is allowed: %+v, %v", c, err)
	}
}

func TestCertificateTEP(t *testing.T) {
	p := problem(t, 4, 2, 0, 0, 2, router.TEP, 2)
	c, err := Certify(p, listed{{0, 2, 1, 3}, {0, 2, 3, 1}})
	if err != nil || c.Disagreements != 2 || c.Valid || c.Slots != 4 || c.PairSource != -1 || c.ReceiverConflict != 0 {
		t.Errorf("two slots differ between the ranks, and the four slots are counted once: %+v, %v", c, err)
	}
	text, err := json.Marshal(c)
	if err != nil || !strings.Contains(string(text), `"pair":null,"pair_source":null,"receiver_conflict":null`) || strings.Count(string(text), `"pair"`) != 1 {
		t.Errorf("nobody sends in tep mode: %s, %v", text, err)
	}
}

// No slots: nothing is defined, nothing is wrong, and JSON says null.
func TestCertificateOfNothing(t *testing.T) {
	c := certify(t, "diagonal", problem(t, 4, 2, 0, 0, 2, router.DEP, 0), Options{})
	text, err := json.Marshal(c)
	if err != nil || !c.Optimal || c.Rank.MaxOverMean.Defined() || !strings.Contains(string(text), `"max_over_mean":null`) || !strings.Contains(string(text), `"pair":null`) {
		t.Errorf("%s, %v", text, err)
	}
}

// The floors against trying every assignment there is. Floors of ranks must never
// be above the best found; without groups or replicas they must be the best, and
// so must the expert floor among assignments with the most level ranks.
func TestFloorsAgainstBruteForce(t *testing.T) {
	random := rand.New(rand.NewPCG(10, 10))
	whole := 0
	for range 500 {
		s := router.Shape{Experts: 2 + random.IntN(5)}
		if s.Experts%2 == 0 && s.Experts > 2 && random.IntN(3) > 0 {
			s.Groups, s.TopKGroups = s.Experts/2, 1
		}
		s.TopK = 1 + random.IntN(min(3, s.Reachable()))
		ranks := 1 + random.IntN(s.Experts)
		layout, err := router.Contiguous(s.Experts, ranks)
		if random.IntN(2) == 0 {
			layout, err = router.Placed(s.Experts, randomPlacement(s.Experts, ranks, random))
		}
		if err != nil {
			t.Fatal(err)
		}
		tokens := 1 + random.IntN(3)
		p := Problem{Shape: s, Layout: layout, Mode: router.TEP, Tokens: slices.Repeat([]int{tokens}, ranks)}
		f := boundsOf(p)
		rank, expert := bruteFloors(p)
		plain := !s.Grouped() && !layout.Replicated()
		cut := f
		if cut.lone = nil; f.rank > cut.row(tokens) { // than if tokens could be cut
			whole++
		}
		if f.rank > rank || plain && (f.rank != rank || f.expert != expert) {
			t.Fatalf("%v, %d tokens, layout %v: floors %d and %d, the best of all assignments has %d and %d",
				s, tokens, layout, f.rank, f.expert, rank, expert)
		}
	}
	if whole == 0 {
		t.Error("no floor is higher for whole tokens")
	}
}

// everyAssignment calls f with every assignment of tokens there is.
func everyAssignment(p Problem, f func(tokens [][]int)) {
	all := choices(p.Shape)
	tokens := make([][]int, p.total())
	var try func(i int)
	try = func(i int) {
		if i == len(tokens) {
			f(tokens)
			return
		}
		for _, token := range all {
			tokens[i] = token
			try(i + 1)
		}
	}
	try(0)
}

func perExpert(s router.Shape, tokens [][]int) []int64 {
	load := make([]int64, s.Experts)
	for _, token := range tokens {
		for _, e := range token {
			load[e]++
		}
	}
	return load
}

// bruteFloors is the least rank maximum of all assignments, and the least expert
// maximum of those whose ranks are the most level: the largest is as small as it
// can be, then the second largest, and so on.
func bruteFloors(p Problem) (rank, expert int64) {
	var best []int64
	everyAssignment(p, func(tokens [][]int) {
		load := perExpert(p.Shape, tokens)
		ranks := p.Layout.RankLoad(load)
		slices.SortFunc(ranks, func(a, b int64) int { return int(b - a) })
		better := slices.Compare(ranks, best)
		if best == nil || better < 0 || better == 0 && slices.Max(load) < expert {
			best, expert = ranks, slices.Max(load)
		}
	})
	return best[0], expert
}

// Rows of all sources at once: where ranks and copies are at their floors, no
// assignment has all sources as near to their rows alone as `beyond` forbids, and
// none uses more experts than the certificate calls possible.
func TestRemoteFloorAgainstBruteForce(t *testing.T) {
	random := rand.New(rand.NewPCG(31, 32))
	bound, met := 0, 0
	for range 150 {
		groups := 2 + random.IntN(2)
		s := router.Shape{Experts: groups * 2, Groups: groups, TopKGroups: 1 + random.IntN(groups-1)}
		s.TopK = 1 + random.IntN(min(3, s.Reachable()))
		ranks := 2 + random.IntN(2)
		p := problem(t, s.Experts, s.TopK, groups, s.TopKGroups, ranks, router.DEP, 1)
		if random.IntN(3) == 0 {
			p.Layout, _ = router.Placed(s.Experts, randomPlacement(s.Experts, ranks, random))
		}
		if ranks == 2 {
			p.Tokens[1] = 2
		}
		f := boundsOf(p)
		least := int64(-1)
		everyAssignment(p, func(tokens [][]int) {
			load := perExpert(s, tokens)
			if slices.Max(p.Layout.RankLoad(load)) > f.rank || slices.Max(p.Layout.CopyLoad(load)) > f.copy {
				return
			}
			active := int64(0)
			for _, n := range load {
				active += min(n, 1)
			}
			if active > f.active {
				t.Fatalf("%v, layout %v, tokens %v use %d experts, possible are %d", s, p.Layout, tokens, active, f.active)
			}
			worst, at := int64(0), make([]int, s.Experts)
			for source, n := range p.Tokens {
				row := make([]int64, ranks)
				for _, token := range tokens[:n] {
					for _, e := range token {
						places := p.Layout.Places(e)
						row[places[at[e]%len(places)].Rank]++
						at[e]++
					}
				}
				tokens = tokens[n:]
				worst = max(worst, slices.Max(row)-f.row(p.Tokens[source]))
			}
			if least < 0 || worst < least {
				least = worst
			}
		})
		if least >= 0 && f.beyond > least {
			t.Fatalf("%v, layout %v, tokens %v: floor %d beyond the rows alone, the best of all assignments has %d",
				s, p.Layout, p.Tokens, f.beyond, least)
		}
		if least > 0 {
			bound++
			if f.beyond == least {
				met++
			}
		}
	}
	if bound == 0 || met == 0 {
		t.Errorf("rows alone cannot be had in %d problems, the floor says so in %d", bound, met)
	}
}

// DeepSeek-V3 with one token per rank on 9 ranks: the first, third, … ninth share
// no group, so that nine tokens in four groups send these five at most 36 slots
// one by one; they need 40. On 16 ranks, two to a group, rows of one are possible.
func TestRemoteFloorByHand(t *testing.T) {
	for ranks, want := range map[int]int64{8: 2, 9: 2, 10: 2, 12: 2, 15: 2, 16: 1, 17: 1} {
		p := problem(t, 256, 8, 8, 4, ranks, router.DEP, 1)
		if got := boundsOf(p).pair(1); got != want {
			t.Errorf("%d ranks: one token sends some rank %d slots or more, want %d", ranks, got, want)
		}
	}
	// Ranks of one group each; a lone token reaches four of them (see crowded).
	p := problem(t, 256, 8, 8, 4, 8, router.DEP, 3, 3, 3, 3, 3, 3, 3, 1)
	if f := boundsOf(p); f.row(3) != 3 || f.beyond != 1 {
		t.Errorf("rows of %d slots and %d more, want 3 and 1", f.row(3), f.beyond)
	}
	// Single tokens give lumps of two (see lumpy), and all other rows are level: an
	// odd number of lumps cannot be, an even number can.
	for lone, want := range []int64{0, 1, 0, 1, 0, 1} {
		p.Tokens = []int{2, 2, 2, 2, 2, 2, 2, 0}
		for r := range lone {
			p.Tokens[r] = 1
		}
		if f := boundsOf(p); f.beyond != want {
			t.Errorf("%d single tokens: rows must be %d above those alone, want %d", lone, f.beyond, want)
		}
	}
}

// Two ranks of a group each, top-2: nine tokens would give nine slots to each only
// if one were cut, so one gets ten. Likewise four tokens on three ranks: not three
// slots but four. But four groups of two on ranks of 3, 3 and 2 are three tokens on
// the first two ranks, three slots each, since the second group lies on both.
func TestWholeTokensByHand(t *testing.T) {
	for _, c := range []struct {
		experts, groups, ranks, tokens int
		want                           int64
	}{{4, 2, 2, 9, 10}, {4, 2, 2, 8, 8}, {6, 3, 3, 4, 4}, {8, 4, 3, 4, 3}} {
		p := problem(t, c.experts, 2, c.groups, 1, c.ranks, router.DEP, c.tokens)
		if got := boundsOf(p).row(c.tokens); got != c.want {
			t.Errorf("%v, %d tokens: some rank gets %d slots or more, want %d", p.Shape, c.tokens, got, c.want)
		}
	}
}

// choices are all sets of experts that one token may have.
func choices(s router.Shape) (all [][]int) {
	for mask := range 1 << s.Experts {
		var set []int
		groups := map[int]bool{}
		for e := range s.Experts {
			if mask>>e&1 == 1 {
				set = append(set, e)
				groups[e/s.GroupSize()] = true
			}
		}
		if len(set) == s.TopK && (!s.Grouped() || len(groups) <= s.TopKGroups) {
			all = append(all, set)
		}
	}
	return all
}

func BenchmarkCertify(b *testing.B) {
	p := problem(b, 256, 8, 8, 4, 8, router.DEP, 8192)
	plan, err := New("diagonal", p, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(8 * 8192 * 8 * 4)
	b.ReportAllocs()
	for b.Loop() {
		if c, err := Certify(p, plan); err != nil || !c.Optimal {
			b.Fatal(err, c)
		}
	}
}

// The floors of a problem are those that the certificate of any of its plans states.
func TestFloorsAreThoseOfTheCertificate(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 22))
	same := func(a, b router.Number) bool { return a == b || !a.Defined() && !b.Defined() }
	for range 300 {
		p := anyProblem(t, random)
		c, f := certify(t, "uniform", p, Options{}), p.Floors()
		if !same(f.Rank, c.Rank.FloorOverMean) || !same(f.Copy, c.Copy.FloorOverMean) || !same(f.Expert, c.Expert.FloorOverMean) {
			t.Fatalf("%v, tokens %v: floors %+v, the certificate has %+v", p.Shape, p.Tokens, f, c)
		}
	}
}
