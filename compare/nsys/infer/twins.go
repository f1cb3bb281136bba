package infer

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

const (
	fewestTwins = 4    // layers
	mostApart   = 0.25 // of the shares of a pair, over the most of layers that are no pair
)

// Twins reports whether layers 2i and 2i+1 carry the same load and their neighbors do
// not, as where two microbatches run every layer one behind the other. It takes the time of
// expert GEMMs by rank and layer. Loads that are alike in all layers, but for noise, show
// nothing: so they are with balanced routing, and no layer's imbalance is then another's. Of
// four layers on two ranks 2 % are alike by chance, of more layers or ranks hardly any.
func Twins(times [][]float64) bool {
	n := len(times[0])
	if n < fewestTwins || n%2 == 1 {
		return false
	}
	shares := make([][]float64, n) // of the mean over ranks; of one rank alone, over layers
	for layer := range shares {
		mean := 0.0
		for _, t := range times {
			mean += t[layer] / float64(len(times))
		}
		if len(times) == 1 {
			mean = floats.Sum(times[0]) / float64(n)
		}
		for _, t := range times {
			shares[layer] = append(shares[layer], t[layer]/mean)
		}
	}
	apart := func(layer int) (most float64) {
		for rank, share := range shares[layer] {
			most = max(most, math.Abs(share-shares[layer+1][rank]))
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
