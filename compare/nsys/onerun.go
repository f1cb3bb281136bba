package nsys

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/nsys/kernel"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// ErrNotOneRun is the error of exports that cannot be ranks of one run.
var ErrNotOneRun = errors.New("the exports are not of one run")

// leastShared is the share of each rank's compute time that must be in kernels which the
// other rank runs too, whatever their tiles. In the captures of testdata ranks of one run
// share at least 0.66, and models on different engines 0.06 to 0.16 one way.
// Two models on one engine can share more than 0.8: only their gates or their libraries
// (see otherModel) can tell them apart.
const leastShared = 0.2

// mostSkew is by how many nanoseconds the clocks of two hosts of one run can disagree at
// most: one that runs on local time is up to 14 hours off.
const mostSkew = int64(24 * 3600e9)

// oneArm refuses exports of both arms.
func (r *reduction) oneArm() error {
	first := map[string]string{}
	for _, d := range r.exports {
		first[d.arm] = cmp.Or(first[d.arm], d.export.Path+" ("+d.armEvidence+")")
	}
	if normal, perfect := first["normal"], first["perfect"]; normal != "" && perfect != "" {
		return &input.Error{File: normal + " and " + perfect, Expected: "exports of one arm",
			Found: "one of the normal and one of the perfect arm",
			Try:   "'moebalance compare' takes both arms, also as a folder that holds both", Err: ErrNotOneRun}
	}
	return nil
}

// oneModel refuses ranks whose gates choose among different numbers of experts, and ranks
// that run almost no kernel in common.
func (r *reduction) oneModel() error {
	first := r.ranks[0]
	own, experts := first.familyTimes(), first.gateExperts()
	for _, p := range r.ranks[1:] {
		found := ""
		if other := p.gateExperts(); len(experts) > 0 && len(other) > 0 &&
			!slices.ContainsFunc(experts, func(n int) bool { return slices.Contains(other, n) }) {
			found = fmt.Sprintf("rank %d with a gate of %d experts and rank %d with one of %d", first.rank.Rank,
				experts[0], p.rank.Rank, other[0])
		} else if p.of != first.of {
			other := p.familyTimes()
			if share := min(sharedTime(own, other), sharedTime(other, own)); share < leastShared {
				found = fmt.Sprintf("ranks %d and %d, of which one has %s of its compute time in kernels that the other runs",
					first.rank.Rank, p.rank.Rank, quantity.Percent(share))
			}
		}
		if found != "" {
			return &input.Error{File: first.rank.Export + " and " + p.rank.Export, Expected: "ranks that run one model",
				Found: found,
				Try:   "pass the exports of one run", Err: ErrNotOneRun}
		}
	}
	return nil
}

// gateExperts are the numbers of experts that the rank's gates are compiled for: several
// where one model drafts for another, none where no name tells.
func (p *rankEvents) gateExperts() (numbers []int) {
	for i, ns := range p.nameTimes() {
		if experts, ok := kernel.GateExperts(p.of.names[i]); ok && ns > 0 {
			numbers = append(numbers, experts)
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// nameTimes is the time of the rank by kernel name.
func (p *rankEvents) nameTimes() []int64 {
	times := make([]int64, len(p.of.names))
	for i := range p.events {
		times[p.events[i].name] += p.events[i].duration
	}
	return times
}

// leastOwn is the share of a rank's time in routed experts, routing and attention that
// must be of libraries which another rank never uses, to make it one of another model.
const leastOwn = 0.05

// otherModel warns of ranks that do the same work by other libraries than the first, or
// work that it does not have: linear attention, say. Their other kernels can be the same.
func (r *reduction) otherModel() {
	first := r.ranks[0]
	firsts := first.libraries()
	for _, p := range r.ranks[1:] {
		own, a, b := p.libraries(), p, first
		names := librariesOf(own, firsts)
		if len(names) == 0 {
			names, a, b = librariesOf(firsts, own), first, p
		}
		if len(names) > 0 {
			r.warn("different_runs", "", "why", "models", "rank", a.rank.Rank, "libraries", names, "other", b.rank.Rank)
			return
		}
	}
}

// libraries is the rank's time in kernels that their names place in attention or the
// routed experts, by library and phase.
func (p *rankEvents) libraries() map[string]int64 {
	times := map[string]int64{}
	for i, ns := range p.nameTimes() {
		if c := &p.of.classes[i]; ns > 0 && !c.Collective &&
			(c.Phase == PhaseAttention || slices.Contains(routedPhases, c.Phase)) {
			times[fmt.Sprintf("%s (%s)", c.Library, c.Phase)] += ns
		}
	}
	return times
}

// librariesOf names the libraries that one rank alone uses, if for enough of its time;
// empty where the other has no such kernels at all, as a stage of a pipeline.
func librariesOf(own, other map[string]int64) (names []string) {
	var all, alone int64
	for name, ns := range own {
		if all += ns; other[name] == 0 {
			alone, names = alone+ns, append(names, name)
		}
	}
	if len(other) == 0 || float64(alone) < leastOwn*float64(max(all, 1)) {
		return nil
	}
	slices.Sort(names)
	return names
}

// familyTimes is the compute time of the rank by kernel name, without template and call
// arguments. kernel.Family, which also drops tile sizes, takes GEMMs of two engines for one.
func (p *rankEvents) familyTimes() map[string]int64 {
	times := map[string]int64{}
	for i, ns := range p.nameTimes() {
		if ns > 0 && !p.of.classes[i].Collective {
			name := kernel.NormalName(p.of.names[i])
			if at := strings.IndexAny(name, "<("); at > 0 {
				name = name[:at]
			}
			times[name] += ns
		}
	}
	return times
}

// sharedTime is the share of own time in names that other has; 1 without any time.
func sharedTime(own, other map[string]int64) float64 {
	var shared, all int64
	for name, ns := range own {
		if all += ns; other[name] > 0 {
			shared += ns
		}
	}
	if all == 0 {
		return 1
	}
	return float64(shared) / float64(all)
}
