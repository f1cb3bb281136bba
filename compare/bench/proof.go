package bench

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router"
)

// AllRanks is the rank of evidence that covers all ranks together or names none.
const AllRanks = -1

// findLines counts, per rank, the lines of an attempt's logs that match the
// pattern; nil without a pattern. A line is looked at up to 64 KiB.
func findLines(pattern, folder string) ([]Found, error) {
	if pattern == "" {
		return nil, nil
	}
	line, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("proof line: %w", err)
	}
	seen := make(map[int]Found)
	for _, name := range []string{stdoutName, stderrName, serverStdoutName, serverStderrName} {
		if err := countLines(filepath.Join(folder, name), line, seen); err != nil {
			return nil, err
		}
	}
	found := slices.Collect(maps.Values(seen))
	slices.SortFunc(found, func(a, b Found) int { return a.Rank - b.Rank })
	return found, nil
}

func countLines(path string, line *regexp.Regexp, seen map[int]Found) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	group := line.SubexpIndex("rank")
	r := bufio.NewReaderSize(f, 64<<10)
	for {
		text, err := r.ReadSlice('\n')
		if m := line.FindSubmatch(text); m != nil {
			rank := AllRanks
			if group >= 0 && len(m[group]) > 0 {
				if n, err := strconv.Atoi(string(bytes.TrimSpace(m[group]))); err == nil {
					rank = n
				}
			}
			f, known := seen[rank]
			if !known {
				f = Found{Rank: rank, Text: strings.ToValidUTF8(string(m[0][:min(len(m[0]), 200)]), "")}
			}
			f.Times++
			seen[rank] = f
		}
		if err == io.EOF {
			return nil
		}
		if err != nil && err != bufio.ErrBufferFull {
			return fmt.Errorf("reading %s: %w", path, err)
		}
	}
}

// The marks that reported loads must reach. A perfect arm's layer may exceed
// the floor by what indivisible loads cost; a normal arm is proved unbalanced by
// one layer beyond what rounding can explain.
const (
	balancedWithin   = 1.05 // max/mean over ranks of every layer of a perfect launch, at most; times the floor where it is known
	unbalancedBeyond = 1.01 // max/mean over ranks or experts of some layer of a normal launch, more than this
)

// proofs says, for each arm, how its ranks were routed over all counted
// launches. One launch that lacks the evidence leaves its arm unproved.
func (c *Campaign) proofs() []Proof {
	proofs := []Proof{}
	for _, arm := range Arms {
		ranks := make(map[int]*Proof)
		printed := c.printedByPerfect()
		for _, a := range c.counted(arm) {
			for _, p := range c.Spec.Treatment.prove(arm, a, c.ranks(a), printed) {
				if have, ok := ranks[p.Rank]; ok {
					have.merge(p)
				} else {
					ranks[p.Rank] = &p
				}
			}
		}
		launches := len(c.counted(arm))
		for _, p := range ranks {
			if p.Launches < launches {
				p.Standing = Unproved
				p.Evidence = fmt.Sprintf("evidence in %d of %d launches only: %s", p.Launches, launches, p.Evidence)
			}
			proofs = append(proofs, *p)
		}
	}
	sortProofs(proofs)
	return proofs
}

// printedByPerfect reports whether every counted launch of the perfect arm has
// printed the treatment's line, so that a log without it tells something.
func (c *Campaign) printedByPerfect() bool {
	perfect := c.counted(Perfect)
	return len(perfect) > 0 && !slices.ContainsFunc(perfect, func(a Attempt) bool { return len(a.LinesFound) == 0 })
}

func sortProofs(proofs []Proof) {
	slices.SortFunc(proofs, func(a, b Proof) int {
		if a.Arm != b.Arm {
			return slices.Index(Arms, a.Arm) - slices.Index(Arms, b.Arm)
		}
		return a.Rank - b.Rank
	})
}

// counted are the finished attempts of an arm that enter the comparison.
func (c *Campaign) counted(arm Arm) []Attempt {
	var attempts []Attempt
	for _, l := range c.Launches {
		if a, ok := l.Done(); ok && l.Arm == arm && l.Kind == Timed {
			attempts = append(attempts, a)
		}
	}
	return attempts
}

// merge takes a further launch's evidence for the same rank into p: the weaker
// of the two standings holds, with its evidence.
func (p *Proof) merge(o Proof) {
	p.Launches += o.Launches
	if p.Proves() && !o.Proves() {
		p.Standing, p.Evidence = o.Standing, o.Evidence
	}
	worse := func(a, b router.Number) router.Number {
		switch {
		case !a.Defined():
			return b
		case !b.Defined():
			return a
		case p.Arm == Perfect:
			return max(a, b)
		}
		return min(a, b)
	}
	p.RankMaxOverMean = worse(p.RankMaxOverMean, o.RankMaxOverMean)
	p.ExpertMaxOverMean = worse(p.ExpertMaxOverMean, o.ExpertMaxOverMean)
}

// prove says what one launch's output proves about its ranks, of which there are
// so many (0: unknown). Recorded loads go before the report's own word, and that
// before a line in the log, which every launch of the perfect arm printed or not.
func (t Treatment) prove(arm Arm, a Attempt, ranks int, printed bool) []Proof {
	if a.Counted != nil {
		return proveByCounts(arm, *a.Counted)
	}
	if a.Result != nil && a.Result.Proof.Claimed {
		return proveByOutput(arm, a)
	}
	if t.Line == "" {
		return []Proof{{Arm: arm, Rank: AllRanks, Launches: 1, Standing: Unproved,
			Evidence:        "the output does not say how it was routed, and no proof line is known for this treatment: give --proof, --counts or --profile",
			RankMaxOverMean: router.Undefined(), ExpertMaxOverMean: router.Undefined()}}
	}
	return t.proveByLine(arm, a, ranks, printed)
}

// level is how uneven the worst layer of a launch is, over ranks or over experts.
type level struct {
	over       string
	max, floor router.Number // max/mean, and the least that whole slots allow, where that is known
}

// within reports whether the level is at most so many times its floor; where
// that is not known, times the 1 of large batches.
func (l level) within(mark router.Number) bool {
	if l.floor.Defined() {
		mark *= l.floor
	}
	return l.max <= mark
}

func (l level) String() string {
	if l.floor.Defined() {
		return fmt.Sprintf("%.3f over %s (floor %.3f)", l.max, l.over, l.floor)
	}
	return fmt.Sprintf("%.3f over %s", l.max, l.over)
}

// knownLevels are those of the levels that were measured: what is undefined is
// neither even nor uneven.
func knownLevels(levels ...level) []level {
	return slices.DeleteFunc(levels, func(l level) bool { return !l.max.Defined() })
}

// worstLayer describes levels, of which there is one at least.
func worstLayer(levels []level) string {
	var texts []string
	for _, l := range levels {
		texts = append(texts, l.String())
	}
	return "worst layer has max/mean " + strings.Join(texts, ", ")
}

// allWithin reports whether levels are known and all are within the mark.
func allWithin(levels []level, mark router.Number) bool {
	return len(levels) > 0 && !slices.ContainsFunc(levels, func(l level) bool { return !l.within(mark) })
}

// proveByOutput judges a launch by what its own report says: whether its router
// was perfect, and the loads it measured, which must agree: those of ranks, or of
// experts where no rank's is known.
func proveByOutput(arm Arm, a Attempt) []Proof {
	said := a.Result.Proof
	p := Proof{Arm: arm, Rank: AllRanks, Launches: 1, Standing: Unbalanced,
		RankMaxOverMean: router.Undefined(), ExpertMaxOverMean: router.Undefined()}
	for _, l := range said.Layers {
		p.RankMaxOverMean = most(p.RankMaxOverMean, l.RankMaxOverMean)
		p.ExpertMaxOverMean = most(p.ExpertMaxOverMean, l.ExpertMaxOverMean)
	}
	levels := knownLevels(level{"ranks", p.RankMaxOverMean, router.Undefined()}, level{"experts", p.ExpertMaxOverMean, router.Undefined()})
	who := "the report says"
	if said.Ranks > 1 {
		who = fmt.Sprintf("the report says for all %d ranks:", said.Ranks)
	}
	loads := "it reports no loads"
	if len(levels) > 0 {
		loads = "its " + worstLayer(levels)
	}
	switch {
	case said.Perfect && len(levels) > 0 && !levels[0].within(balancedWithin):
		p.Standing, p.Evidence = Unproved, who+" perfect router, but "+loads
	case said.Perfect:
		p.Standing, p.Evidence = Balanced, who+" perfect router, and "+loads
	case allWithin(levels, unbalancedBeyond):
		p.Standing, p.Evidence = Balanced, who+" learned router, but "+loads
	default:
		p.Evidence = who + " learned router, and " + loads
	}
	return p.forRanks(said.Ranks)
}

// forRanks is the same proof for each of so many ranks, as evidence about all of
// them together allows.
func (p Proof) forRanks(ranks int) []Proof {
	if ranks <= 1 {
		return []Proof{p}
	}
	proofs := make([]Proof, ranks)
	for rank := range proofs {
		proofs[rank] = p
		proofs[rank].Rank = rank
	}
	return proofs
}

// proveByCounts judges a launch by the loads it recorded, each beside its floor.
// Even ranks are what the perfect arm wants (even experts, where no rank is
// known); a normal launch is proved by unevenness at either level.
func proveByCounts(arm Arm, c Counted) []Proof {
	p := Proof{Arm: arm, Rank: AllRanks, Launches: 1, Standing: Unbalanced, RankMaxOverMean: c.RankMaxOverMean, ExpertMaxOverMean: c.ExpertMaxOverMean}
	levels := knownLevels(level{"ranks", c.RankMaxOverMean, c.RankFloor}, level{"experts", c.ExpertMaxOverMean, c.ExpertFloor})
	switch {
	case len(levels) == 0:
		p.Standing, p.Evidence = Unproved, "the recorded expert counts hold no load"
		return p.forRanks(c.Ranks)
	case arm == Normal && allWithin(levels, balancedWithin), arm == Perfect && levels[0].within(balancedWithin):
		p.Standing = Balanced
	}
	p.Evidence = "recorded expert counts: " + worstLayer(levels)
	return p.forRanks(c.Ranks)
}

func most(a, b router.Number) router.Number {
	if !a.Defined() {
		return b
	}
	if !b.Defined() {
		return a
	}
	return max(a, b)
}

// proveByLine judges a launch by the lines its ranks printed. Their absence
// from the normal arm counts only beside their presence in every launch of the
// perfect one: an engine that never prints the line says nothing by not printing
// it. Lines that do not name their rank must be as many as there are ranks: a
// variable that reached one rank only prints one.
func (t Treatment) proveByLine(arm Arm, a Attempt, ranks int, printed bool) []Proof {
	proof := func(rank int, standing Standing, format string, args ...any) Proof {
		return Proof{Arm: arm, Rank: rank, Launches: 1, Standing: standing, Evidence: fmt.Sprintf(format, args...),
			RankMaxOverMean: router.Undefined(), ExpertMaxOverMean: router.Undefined()}
	}
	switch {
	case len(a.LinesFound) > 0:
	case arm == Perfect:
		return []Proof{proof(AllRanks, Unproved, "no line of its log matches %q: was the switch seen? else give another --proof, --counts or --profile", t.Line)}
	case !printed:
		return []Proof{proof(AllRanks, Unproved, "its log lacks the line that proves balance, and so does that of a perfect launch: give another --proof, --counts or --profile")}
	default:
		return []Proof{proof(AllRanks, Unbalanced, "its log lacks the line that the perfect arm prints")}
	}
	var proofs []Proof
	for _, f := range a.LinesFound {
		if arm == Perfect && f.Rank == AllRanks && f.Times < ranks {
			proofs = append(proofs, proof(f.Rank, Unproved, "its log says %q %d×, without a rank, for %d ranks (--ranks 1 if one line speaks for all)", f.Text, f.Times, ranks))
			continue
		}
		proofs = append(proofs, proof(f.Rank, Balanced, "its log says %q (%d×)", f.Text, f.Times))
	}
	return proofs
}
