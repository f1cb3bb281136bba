package proof

import (
	"fmt"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/compare/bench/evidence"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Status is what evidence shows about routing.
type Status string

// What it can show.
const (
	Balanced   Status = "balanced"
	Unbalanced Status = "not balanced"
	Unproved   Status = "unproved"
)

// Rank says how one rank of one arm was routed, and by what evidence.
type Rank struct {
	Arm      gain.Arm
	Rank     int // AllRanks where the evidence covers all together, or names none
	Launches int // with such evidence
	Status   Status
	Measured bool // by loads, not by the engine's word
	Evidence string
}

// Severity is how far the evidence is from proving its arm: 0 proves it, 1 proves nothing,
// 2 proves the other arm.
func (p Rank) Severity() int {
	wanted := Unbalanced
	if p.Arm == gain.Perfect {
		wanted = Balanced
	}
	switch p.Status {
	case wanted:
		return 0
	case Unproved:
		return 1
	}
	return 2
}

// merge adds what a further launch shows about the same rank: of the two, the more
// severe one holds.
func (p *Rank) merge(o Rank) {
	p.Launches += o.Launches
	if o.Severity() > p.Severity() || o.Severity() == p.Severity() && p.Measured && !o.Measured {
		p.Status, p.Evidence = o.Status, o.Evidence
	}
	p.Measured = p.Measured && o.Measured
}

// Graded is the proof for or against the arm. Traces measure what the launches only
// claim or say nothing about, and never speak against what they show.
func (p Rank) Graded(traces gain.TraceProof) gain.Proof {
	graded := gain.Proof{Arm: p.Arm, Rank: router.OptInt(p.Rank), Grade: gain.None, Evidence: p.Evidence}
	switch {
	case p.Severity() == 0 && p.Measured:
		graded.Grade = gain.Measured
		return graded
	case p.Severity() == 0:
		graded.Grade = gain.Claimed
	case p.Severity() == 2:
		return graded
	}
	if traces.Evidence != "" {
		graded.Evidence += "; " + traces.Evidence
	}
	if traces.Proved {
		graded.Grade = gain.Measured
	}
	return graded
}

// forRanks is the same evidence for each of so many ranks, from all of them together.
func (p Rank) forRanks(ranks int) []Rank {
	if ranks <= 1 {
		p.Rank = gain.AllRanks
		return []Rank{p}
	}
	of := slices.Repeat([]Rank{p}, ranks)
	for rank := range of {
		of[rank].Rank = rank
	}
	return of
}

// OfArm says how the ranks of an arm were routed over all its counted launches, by rank. A launch that
// lacks the evidence leaves its arm unproved, and so does a wanted rank of which there is none.
func (r Rules) OfArm(arm gain.Arm, launches []Launch) (all []Rank) {
	wanted, ranks := 0, make(map[int]*Rank)
	for _, l := range launches {
		wanted = max(wanted, l.Ranks)
		for _, p := range r.Of(arm, l) {
			if have, ok := ranks[p.Rank]; ok {
				have.merge(p)
			} else {
				ranks[p.Rank] = &p
			}
		}
	}
	for _, p := range ranks {
		if p.Launches < len(launches) {
			p.merge(Rank{Arm: arm, Status: Unproved, Evidence: fmt.Sprintf("evidence in %d of %d launches only: %s",
				p.Launches, len(launches), p.Evidence)})
		}
	}
	for rank := range wanted {
		if ranks[rank] == nil && ranks[gain.AllRanks] == nil {
			ranks[rank] = &Rank{Arm: arm, Rank: rank, Status: Unproved, Evidence: "no evidence of this rank"}
		}
	}
	for _, rank := range slices.Sorted(maps.Keys(ranks)) {
		all = append(all, *ranks[rank])
	}
	return all
}

// byLine judges a launch by the proof lines its ranks printed, of which each must
// print its own: lines that do not name their rank may all be of one rank. Their
// absence from the normal arm is evidence only beside their presence in every launch
// of the perfect one: an engine that never prints the line says nothing by not printing
// it. A launch in which the engine reports a failure claims nothing.
func (r Rules) byLine(arm gain.Arm, l Launch) []Rank {
	proof := func(rank int, s Status, format string, args ...any) Rank {
		return Rank{Arm: arm, Rank: rank, Launches: 1, Status: s, Evidence: fmt.Sprintf(format, args...)}
	}
	failed := slices.IndexFunc(l.Lines, func(f evidence.ProofLine) bool { return f.Failed })
	named := 0
	for _, f := range l.Lines {
		if f.Rank != gain.AllRanks {
			named++
		}
	}
	var proofs []Rank
	for _, f := range l.Lines {
		status, doubt := Unproved, ""
		switch {
		case arm == gain.Normal:
			status = Balanced
		case failed >= 0:
			doubt = fmt.Sprintf(", but the engine says %q", l.Lines[failed].Text)
		case r.Limited(f.Text) != "":
			doubt = fmt.Sprintf(" is of TensorRT-LLM's first planner, which ignores the expert groups of %s and is not "+
				"balanced there", r.Limited(f.Text))
		case l.Ranks == 0:
			doubt = fmt.Sprintf(" seen on %s; say --ranks N", quantity.Count(max(1, named), "rank"))
		case f.Rank == gain.AllRanks && l.Ranks > 1:
			doubt = fmt.Sprintf(" names no rank, so %d× are not %d ranks: name the rank by (?P<rank>…) in --proof, label the "+
				"output by rank (srun --label, mpirun --tag-output), or give --counts or --profile", f.Times, l.Ranks)
		default:
			status = Balanced
		}
		proofs = append(proofs, proof(f.Rank, status, "log line %q (%d×)%s", f.Text, f.Times, doubt))
	}
	switch {
	case len(l.Lines) > 0:
		return proofs
	case arm == gain.Perfect:
		return []Rank{proof(gain.AllRanks, Unproved,
			"no log line matches %s: check that the ranks see the switch, or give another %s", r.Line, OtherFlags)}
	case !r.Printed:
		return []Rank{proof(gain.AllRanks, Unproved,
			"no proof line in either arm: give another %s", OtherFlags)}
	}
	return []Rank{proof(gain.AllRanks, Unbalanced, "the log lacks the proof line that the perfect arm prints")}
}
