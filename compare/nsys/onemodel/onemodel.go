// Package onemodel tells from the kernels that two ranks ran whether these can be of one model:
// by the experts that their gates are compiled for, by the time in kernels that both run, and
// by the libraries that only one of them uses. Ranks of one run differ in tiles and in which
// stage of a pipeline they are; that never counts.
package onemodel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/kernel"
)

// Kernels are those of one rank: names, what these say, and the time of each.
type Kernels struct {
	Names   []string
	Classes []kernel.Class
	NS      []int64
}

// leastShared is the share of each rank's compute time that must be in kernels which the
// other rank runs too, whatever their tiles. In the captures of testdata ranks of one run
// share at least 0.66, and models on different engines 0.06 to 0.16 one way.
// Two models on one engine can share more than 0.8: only their gates or their libraries
// (see Alone) can tell them apart.
const leastShared = 0.2

// Shared is the smaller share of two ranks' compute time that lies in kernels which the other
// one runs, and whether that is too few for one model.
func Shared(a, b Kernels) (share float64, few bool) {
	own, other := a.families(), b.families()
	share = min(sharedTime(own, other), sharedTime(other, own))
	return share, share < leastShared
}

// Gates are numbers of experts that the gates of two ranks choose among, different where
// none is common to both, else 0.
func Gates(a, b Kernels) (own, other int) {
	x, y := a.gateExperts(), b.gateExperts()
	if len(x) == 0 || len(y) == 0 || slices.ContainsFunc(x, func(n int) bool { return slices.Contains(y, n) }) {
		return 0, 0
	}
	return x[0], y[0]
}

// gateExperts are the numbers of experts that the rank's gates are compiled for: several
// where one model drafts for another, none where no name tells.
func (k Kernels) gateExperts() (numbers []int) {
	for i, ns := range k.NS {
		if experts, ok := kernel.GateExperts(k.Names[i]); ok && ns > 0 {
			numbers = append(numbers, experts)
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// leastOwn is the share of a rank's time in routed experts, routing and attention that
// must be of libraries which another rank never uses, to make it one of another model.
const leastOwn = 0.05

// Alone names the libraries that one rank uses and another does not, if for enough of its time;
// empty where the other has no such kernels at all, as a stage of a pipeline.
func Alone(a, b Kernels) (names []string) {
	own, other := a.libraries(), b.libraries()
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

// libraries is the rank's time in kernels that their names place in attention or the
// routed experts, by library and phase.
func (k Kernels) libraries() map[string]int64 {
	times := map[string]int64{}
	for i, ns := range k.NS {
		if c := &k.Classes[i]; ns > 0 && !c.Collective &&
			(c.Phase == kernel.PhaseAttention || slices.Contains(kernel.Routed, c.Phase)) {
			times[fmt.Sprintf("%s (%s)", c.Library, c.Phase)] += ns
		}
	}
	return times
}

// families is the compute time of the rank by kernel name, without template and call
// arguments. kernel.Family, which also drops tile sizes, takes GEMMs of two engines for one.
func (k Kernels) families() map[string]int64 {
	times := map[string]int64{}
	for i, ns := range k.NS {
		if ns > 0 && !k.Classes[i].Collective {
			name := kernel.NormalName(k.Names[i])
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
