package steps

import "gonum.org/v1/gonum/stat"

// mostApart is how far apart the loads of a pair are, over the ones of layers that are no pair: two microbatches
// whose loads vary by a tenth have up to 0.15, 60 real traces of 4 to 48 layers 0.65 and more.
const mostApart = 0.25

// leastApart is how far a rank's loads of layers lie apart, over their mean, that show anything: recorded and drawn
// ones lie 0.04 to 0.8 apart, balanced ones 0.003.
const leastApart = 0.02

// recurring bounds how far apart other layers are whose loads recur, as a multiple of what pairs are, leastApart at
// least. Where a third of all layers recur, as where a few ranks take turns in being hot, loads are no sign of pairs.
const recurring = 4

// Twins reports whether two microbatches run every layer, so that layers carry the same load in pairs and others do
// not: layers 2i and 2i+1 where one follows the other in every layer, i and n/2+i where it follows behind the last. It
// takes the time of expert GEMMs by rank and layer; one rank's shows too little to tell halves from layers. Loads that
// are alike in all layers, but for noise, show nothing: so they are with balanced routing, and no layer's imbalance is
// then another's. Of four layers on two ranks some are alike by chance, of more layers or ranks hardly any; two layers
// have no others beside their pair.
func Twins(times [][]float64) bool {
	n := len(times[0])
	return len(times) > 1 && n%2 == 0 && (alikeAt(1, times) || alikeAt(n/2, times))
}

// alikeAt reports whether the layers of one microbatch carry the load of the layers at a distance, of the other.
func alikeAt(distance int, times [][]float64) bool {
	n := len(times[0])
	var mean [2]float64 // of each microbatch, which need not have half of the tokens
	own := make([]float64, n)
	for _, t := range times {
		for layer, ns := range t {
			mean[layer/distance%2] += 2 * ns / float64(n*len(times))
			own[layer] += ns / float64(len(times))
		}
	}
	apart := func(layer, other int, mean, otherMean float64) (sum float64) {
		for _, t := range times {
			by := t[layer]/mean - t[other]/otherMean
			sum += by * by
		}
		return sum
	}
	var pairs float64
	var others []float64
	for layer := range n {
		for other := layer + 1; other < n; other++ {
			if other == layer+distance && layer/distance%2 == 0 {
				pairs += apart(layer, other, mean[0], mean[1]) / float64(n/2)
			} else {
				others = append(others, apart(layer, other, own[layer], own[other])) // also where they run other kernels
			}
		}
	}
	alike, typical, least := 0, stat.Mean(others, nil), leastApart*leastApart*float64(len(times))
	for _, by := range others {
		if by < max(recurring*recurring*pairs, least) {
			alike++
		}
	}
	return pairs < mostApart*mostApart*typical && 3*alike < len(others) && typical > least
}
