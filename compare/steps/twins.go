package steps

import "gonum.org/v1/gonum/floats"

// mostApart is how far apart the loads of a pair are, over the ones of layers that are no pair: two microbatches
// whose loads vary by a tenth have up to 0.15, 60 real traces of 4 to 48 layers 0.65 and more.
const mostApart = 0.25

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
	mean := make([]float64, n) // over ranks: a microbatch need not have half of the tokens, and layers run other kernels
	for _, t := range times {
		floats.AddScaled(mean, 1/float64(len(times)), t)
	}
	apart := func(layer, other int) (sum float64) {
		for _, t := range times {
			by := t[layer]/mean[layer] - t[other]/mean[other]
			sum += by * by
		}
		return sum
	}
	pairs, others, before := 0.0, 0.0, -1
	for layer := range n {
		if layer/distance%2 == 1 {
			continue
		}
		if pairs += apart(layer, layer+distance); before >= 0 {
			others += apart(layer, before+distance)
		}
		before = layer
	}
	return pairs/float64(n/2) < mostApart*mostApart*others/float64(n/2-1)
}
