package nsys

import (
	"maps"
	"slices"

	"github.com/moebalance/moebalance/router"
)

// counted tells which layers' time is judged. Without any layer ranges all of a
// step is one layer, None.
func (t *Trace) counted() func(layer router.Whole) bool {
	layered := slices.ContainsFunc(t.Cells, func(c Cell) bool { return c.Layer.Defined() })
	return func(layer router.Whole) bool { return layer.Defined() || !layered }
}

// layerGrid is the compute time of a layer on the ranks that have it at all, by
// step, then by rank. Time in collectives is not compute. A rank without a kernel of
// any phase in a step in which others ran the layer did not do nothing: its kernels
// were lost, and the step is left out.
type layerGrid struct {
	layer router.Whole
	ranks []int
	times [][]int64
	lost  int // steps left out
}

// layerGrids collects the layers' times in the phases that count, in the steps given,
// which all ranks have, ascending.
func (t *Trace) layerGrids(steps []router.Whole, counts func(Phase) bool) []layerGrid {
	counted := t.counted()
	byLayer := map[router.Whole]*layerGrid{}
	for _, c := range t.Cells {
		if !counted(c.Layer) {
			continue
		}
		g := byLayer[c.Layer]
		if g == nil {
			g = &layerGrid{layer: c.Layer}
			byLayer[c.Layer] = g
		}
		if !slices.Contains(g.ranks, c.Rank) {
			g.ranks = append(g.ranks, c.Rank)
		}
	}
	ran := map[router.Whole][][]bool{}
	for layer, g := range byLayer {
		slices.Sort(g.ranks)
		for range steps {
			g.times = append(g.times, make([]int64, len(g.ranks)))
			ran[layer] = append(ran[layer], make([]bool, len(g.ranks)))
		}
	}
	for _, c := range t.Cells {
		step, given := slices.BinarySearch(steps, c.Step)
		if !counted(c.Layer) || !given {
			continue
		}
		g := byLayer[c.Layer]
		rank, _ := slices.BinarySearch(g.ranks, c.Rank)
		ran[c.Layer][step][rank] = true
		if counts(c.Phase) {
			g.times[step][rank] += c.TotalNS - c.CollectiveNS
		}
	}
	grids := []layerGrid{}
	for _, layer := range slices.Sorted(maps.Keys(byLayer)) {
		grids = append(grids, byLayer[layer].whole(ran[layer]))
	}
	return grids
}

// whole leaves out the steps that only some of the ranks ran.
func (g *layerGrid) whole(ran [][]bool) layerGrid {
	kept := layerGrid{layer: g.layer, ranks: g.ranks}
	for step, row := range g.times {
		if slices.Contains(ran[step], true) && slices.Contains(ran[step], false) {
			kept.lost++
			continue
		}
		kept.times = append(kept.times, row)
	}
	return kept
}
