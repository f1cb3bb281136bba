package diff

import (
	"maps"
	"slices"

	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
)

// ActiveExperts is how many experts of a layer each arm was seen to use on the
// compared ranks, where both sides recorded it.
type ActiveExperts struct {
	Layer   router.OptInt `json:"layer"`
	Normal  int           `json:"normal"`
	Perfect int           `json:"perfect"`
}

func activeExperts(normal, perfect *nsys.Trace, ranks []int) []ActiveExperts {
	inNormal, inPerfect := activeByLayer(normal, ranks), activeByLayer(perfect, ranks)
	rows := []ActiveExperts{}
	for _, layer := range slices.Sorted(maps.Keys(inNormal)) {
		if p, ok := inPerfect[layer]; ok {
			rows = append(rows, ActiveExperts{router.OptInt(layer), len(inNormal[layer]), len(p)})
		}
	}
	return rows
}

// activeByLayer is the experts that had slots, or kernels where no load was
// recorded.
func activeByLayer(t *nsys.Trace, ranks []int) map[int]map[int]bool {
	active := map[int]map[int]bool{}
	for _, e := range t.Experts {
		if !slices.Contains(ranks, e.Rank) || e.Known && e.Slots == 0 || !e.Known && e.Instances == 0 {
			continue
		}
		if active[int(e.Layer)] == nil {
			active[int(e.Layer)] = map[int]bool{}
		}
		active[int(e.Layer)][e.Expert] = true
	}
	return active
}
