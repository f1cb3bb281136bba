package replay

import "slices"

// Stay is how long a rank stays in its collectives in a step, in nanoseconds: until the last rank has
// arrived, and from then on. Ranks that arrive at 0 and 30 and leave at 40 wait 30 and 0, and transfer 10 and 10.
type Stay struct{ WaitNS, TransferNS float64 }

// Stays gives the stays of each rank, mean over steps.
func (r *Run) Stays() []Stay {
	mean, n := make([]Stay, len(r.steps[0].ranks)), float64(len(r.steps))
	for _, s := range r.steps {
		for rank, stay := range s.meetings.stays {
			mean[rank].WaitNS += stay.WaitNS / n
			mean[rank].TransferNS += stay.TransferNS / n
		}
	}
	return mean
}

// Wait is what ranks wait in a step for one rank that arrives last at collectives, mean over the ranks that
// meet, and the parts of it: what the last rank took more than the mean rank since they met.
type Wait struct {
	Step, Rank int // the step's position among the steps that New was given
	NS         float64
	Experts    float64 // compute of experts
	Late       float64 // launches
	Other      float64 // other compute
}

// Add adds other waiting.
func (w *Wait) Add(o Wait) {
	w.NS, w.Experts, w.Late, w.Other = w.NS+o.NS, w.Experts+o.Experts, w.Late+o.Late, w.Other+o.Other
}

// asLate is the share of the mean wait by which a rank may arrive before the last one and be as
// late: of two that waited for each other at a collective of their own, the one that came later to
// that is the late one.
const asLate = 0.1

// Waits gives the waiting in every step that is replayed, for each rank that is waited for, as it was recorded. It
// means something only where the law holds, see Holds.
func (r *Run) Waits() (list []Wait) {
	for _, s := range r.steps {
		waits := make([]Wait, len(s.ranks))
		since := make([]Wait, len(s.ranks)) // what each rank did since it met others
		s.replay(change{}, func(rank int, seg *segment, late float64) {
			since[rank].Add(Wait{Experts: seg.all[Experts], Late: late, Other: seg.all[Tokens] + seg.all[Fixed]})
		}, func(m *arrivals) {
			rank, one := m.wait(since)
			waits[rank].Add(one)
			for _, r := range m.ranks {
				since[r] = Wait{}
			}
		})
		for rank := range waits {
			if waits[rank].Step, waits[rank].Rank = s.number, rank; waits[rank].NS > 0 {
				list = append(list, waits[rank])
			}
		}
	}
	return list
}

// wait is the wait at a collective, and the rank that is waited for.
func (a *arrivals) wait(since []Wait) (rank int, w Wait) {
	n, mean, all := float64(len(a.ranks)), 0.0, Wait{}
	for i, r := range a.ranks {
		mean += a.at[i] / n
		all.Experts += since[r].Experts / n
		all.Other += since[r].Other / n
		all.Late += since[r].Late / n
	}
	w.NS = a.last - mean
	at := slices.Index(a.at, a.last)
	for i, r := range a.ranks {
		if a.last-a.at[i] <= asLate*w.NS && since[r].Late > since[a.ranks[at]].Late {
			at = i
		}
	}
	rank = a.ranks[at]
	own := since[rank]
	w.Experts, w.Other, w.Late = own.Experts-all.Experts, own.Other-all.Other, own.Late-all.Late
	return rank, w
}
