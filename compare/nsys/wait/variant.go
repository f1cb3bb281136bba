package wait

import (
	"cmp"
	"slices"

	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/router"
)

// Variant is a kernel that a rank ran in a layer and phase where another rank ran other
// variants of it for the same work, over the steps that count: the ranks launched
// kernels of the family equally often there, and two of them have no variant in common.
type Variant struct {
	Layer  router.OptInt `json:"layer"`
	Phase  kernel.Phase  `json:"phase"`
	Family string        `json:"family"` // the name up to tile sizes and arguments
	// ChosenBy is "rank" where two of the ranks have no variant in common in the phase
	// of any layer either, as when each rank tunes its kernels for itself. Else it is
	// "size": libraries choose by problem size, and the load of the layer differs.
	ChosenBy  string        `json:"chosen_by"`
	Rank      int           `json:"rank"`
	Name      string        `json:"name"`
	Instances int64         `json:"instances"`
	TotalNS   int64         `json:"total_ns"`
	MeanNS    router.Number `json:"mean_ns"`
}

// The values of Variant.ChosenBy.
const (
	ByRank = "rank"
	BySize = "size"
)

// place is a phase of a layer, useKey a kernel in it.
type place struct {
	layer int32
	phase kernel.Phase
}

type useKey struct {
	place
	name int32
}

// use is how often a rank ran it and for how long.
type use struct{ instances, ns int64 }

// kernelUses are a rank's kernels by place and name. Neighbors are mostly of one place.
type kernelUses struct {
	of   map[place]map[int32]*use
	last place
	here map[int32]*use
}

func (l *kernelUses) add(k *Kernel) {
	if at := (place{k.Layer, k.Phase}); l.here == nil || at != l.last {
		if l.last, l.here = at, l.of[at]; l.here == nil {
			l.here = map[int32]*use{}
			l.of[at] = l.here
		}
	}
	u := l.here[k.Name]
	if u == nil {
		u = &use{}
		l.here[k.Name] = u
	}
	u.instances++
	u.ns += k.End - k.Start
}

// group is kernels of one family in a phase of a layer, of router.NoID for all layers.
type group struct {
	place
	family string
}

// groups are the uses of families, by rank, then by name.
func (a *analysis) groups() map[group][]map[int32]use {
	families := make([]string, len(a.Names))
	for i, name := range a.Names {
		families[i] = kernel.Family(name)
	}
	groups := map[group][]map[int32]use{}
	for i := range a.Ranks {
		for at, kernels := range a.Ranks[i].used.of {
			for name, u := range kernels {
				for _, layer := range []int32{at.layer, router.NoID} {
					g := group{place{layer, at.phase}, families[name]}
					if groups[g] == nil {
						groups[g] = make([]map[int32]use, len(a.Ranks))
					}
					if groups[g][i] == nil {
						groups[g][i] = map[int32]use{}
					}
					sum := groups[g][i][name]
					groups[g][i][name] = use{sum.instances + u.instances, sum.ns + u.ns}
				}
			}
		}
	}
	return groups
}

// variants fills Variants and what waits need of them.
func (a *analysis) variants() {
	groups := a.groups()
	a.different, a.apart = map[useKey]bool{}, map[[3]int32]bool{}
	for g, byRank := range groups {
		if g.layer == router.NoID || !sameWork(byRank) || shared(byRank) {
			continue
		}
		everywhere, pairs, chosenBy := groups[group{place{router.NoID, g.phase}, g.family}], apart(byRank), BySize
		for _, p := range pairs {
			if disjoint(everywhere[p[0]], everywhere[p[1]]) {
				chosenBy = ByRank
				a.apart[[3]int32{g.layer, int32(p[0]), int32(p[1])}] = true
			}
		}
		for i := 0; len(pairs) > 0 && i < len(byRank); i++ {
			for name, u := range byRank[i] {
				if chosenBy == ByRank {
					a.different[useKey{g.place, name}] = true
				}
				a.Variants = append(a.Variants, Variant{router.OptInt(g.layer), g.phase, g.family, chosenBy,
					a.Ranks[i].Number, a.Names[name], u.instances, u.ns,
					router.Number(u.ns) / router.Number(u.instances)})
			}
		}
	}
	slices.SortFunc(a.Variants, func(x, y Variant) int {
		return cmp.Or(cmp.Compare(x.ChosenBy, y.ChosenBy), cmp.Compare(x.Layer, y.Layer),
			kernel.ComparePhases(x.Phase, y.Phase), cmp.Compare(x.Family, y.Family), cmp.Compare(x.Rank, y.Rank),
			cmp.Compare(x.Name, y.Name))
	})
}

// sameWork reports whether all ranks launched a family, and equally often.
func sameWork(byRank []map[int32]use) bool {
	launches := make([]int64, len(byRank))
	for i, own := range byRank {
		for _, u := range own {
			launches[i] += u.instances
		}
	}
	return launches[0] > 0 && slices.Min(launches) == slices.Max(launches)
}

// shared reports whether all ranks ran one and the same variant, as they mostly do: looking
// at each two of them would take a second for 512.
func shared(byRank []map[int32]use) bool {
	for name := range byRank[0] {
		lacks := func(own map[int32]use) bool { _, has := own[name]; return !has }
		if !slices.ContainsFunc(byRank, lacks) {
			return true
		}
	}
	return false
}

// apart are the pairs of ranks that ran no kernel in common.
func apart(byRank []map[int32]use) (pairs [][2]int) {
	for i := range byRank {
		for j := range byRank {
			if disjoint(byRank[i], byRank[j]) {
				pairs = append(pairs, [2]int{i, j})
			}
		}
	}
	return pairs
}

func disjoint(x, y map[int32]use) bool {
	for name := range x {
		if _, both := y[name]; both {
			return false
		}
	}
	return true
}
