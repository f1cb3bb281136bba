package steps

import "math"

const (
	fewestTwins = 4   // layers
	mostApart   = 0.2 // of a pair, over the most of layers that are no pair
)

// Twins reports whether layers 2i and 2i+1 carry the same load and their neighbors do
// not, as where two microbatches run every layer one behind the other. It takes the time of
// expert GEMMs by rank and layer. Loads that are alike in all layers, but for noise, show
// nothing: so they are with balanced routing, and no layer's imbalance is then another's. Of
// four layers on two ranks 1 % are alike by chance, of more layers or ranks hardly any.
func Twins(times [][]float64) bool {
	n := len(times[0])
	if n < fewestTwins || n%2 == 1 {
		return false
	}
	var mean [2]float64 // of each microbatch, which need not have half of the tokens
	for _, t := range times {
		for layer, ns := range t {
			mean[layer%2] += 2 * ns / float64(n*len(times))
		}
	}
	if len(times) == 1 { // whose own loads show too little to tell halves from layers
		mean[0] = (mean[0] + mean[1]) / 2
		mean[1] = mean[0]
	}
	apart := func(layer int) (most float64) {
		for _, t := range times {
			most = max(most, math.Abs(t[layer]/mean[layer%2]-t[layer+1]/mean[(layer+1)%2]))
		}
		return most
	}
	pairs, others := 0.0, 0.0
	for layer := 0; layer+1 < n; layer += 2 {
		if pairs = max(pairs, apart(layer)); layer+2 < n {
			others = max(others, apart(layer+1))
		}
	}
	return pairs < mostApart*others
}
