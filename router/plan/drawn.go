package plan

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/moebalance/moebalance/router"
)

// The names of drawn plans: a prefix and the max/mean over ranks, or a checksum of counts.
const (
	targetPrefix   = "target-"
	recordedPrefix = "recorded-"
)

// Target names the plan whose busiest rank gets so many times the mean: "1.20" → "target-1.2".
func Target(maxOverMean string) string {
	if v, err := strconv.ParseFloat(maxOverMean, 64); err == nil {
		maxOverMean = strconv.FormatFloat(v, 'f', -1, 64)
	}
	return targetPrefix + maxOverMean
}

// Recorded reads the counts that a plan follows, {"logical_count": [[…], …]}, a list of experts
// for each layer, or such lists for each step, which add up. Layers that count nothing, the dense ones of
// DeepSeek-V3, are left out. It names the plan after the text.
func Recorded(text []byte) (name string, counts [][]float64, err error) {
	var file struct {
		Count json.RawMessage `json:"logical_count"`
	}
	steps := make([][][]float64, 1)
	if err = json.Unmarshal(text, &file); err == nil && json.Unmarshal(file.Count, &steps[0]) != nil {
		err = json.Unmarshal(file.Count, &steps)
	}
	if err != nil {
		return "", nil, fmt.Errorf("want {\"logical_count\": [[…], …]}, a list of experts for each layer")
	}
	for _, step := range steps {
		for l, experts := range step {
			if l == len(counts) {
				counts = append(counts, make([]float64, len(experts)))
			}
			if len(experts) != len(counts[0]) {
				return "", nil, fmt.Errorf("layer %d has counts of %d experts, layer 0 of %d", l, len(experts), len(counts[0]))
			}
			for e, n := range experts {
				counts[l][e] += n
			}
		}
	}
	counts = slices.DeleteFunc(counts, func(layer []float64) bool {
		return !slices.ContainsFunc(layer, func(n float64) bool { return n != 0 })
	})
	return fmt.Sprintf("%s%08x", recordedPrefix, crc32.ChecksumIEEE(text)), counts, nil
}

// Drawn reports the name of a plan whose tokens choose experts at random, some more often
// than others, as a learned router does.
func Drawn(name string) bool {
	return strings.HasPrefix(name, targetPrefix) || strings.HasPrefix(name, recordedPrefix)
}

const (
	drawnRows   = 512 // of a layer
	drawnLayers = 4   // of a target: its hot rank is another one in each
	mostDrawn   = 1 << 26
)

// newDrawn is a plan of random tokens, in which each expert comes as often as its share of the slots says: a table
// for each layer. Every token draws its k experts by itself, as tokens of a learned router do; then few slots are
// given to other experts, until the whole table holds the shares. A batch is as uneven as chance makes it: 64 tokens of
// GPT-OSS's recorded shares meet about 100 of 128 experts, where rationed shares would meet 127.
func newDrawn(name string, p Problem, o Options) (plan Plan, err error) {
	ids, layers := make([][]int32, len(p.sources())), len(o.Counts) // by source: the rows of all layers
	text, target := strings.CutPrefix(name, targetPrefix)
	aim, _ := strconv.ParseFloat(text, 64) // 0 where it is no number
	if target {
		layers = drawnLayers
	}
	switch {
	case target && (!(aim >= 1) || Target(text) != name):
		return plan, fmt.Errorf("want a max/mean over ranks of at least 1, have %q", text)
	case !target && (layers == 0 || len(o.Counts[0]) != p.Shape.Experts):
		return plan, fmt.Errorf("want counts of %d experts for each layer, have none, or others", p.Shape.Experts)
	case layers*drawnRows*len(ids)*p.Shape.TopK > mostDrawn:
		return plan, fmt.Errorf("%w: %d layers of %d ranks are more than can be drawn", router.ErrShape, layers, len(ids))
	}
	for layer := range layers {
		random := rand.New(rand.NewPCG(o.Seed, uint64(layer)))
		var share []float64
		if target {
			share = p.skewed(aim, layer*p.Layout.Ranks()/layers, random)
		} else if share, err = shares(o.Counts[layer]); err != nil {
			return plan, fmt.Errorf("layer %d: %w", layer, err)
		}
		drawn, load := p.drawLayer(share, random), router.NewLoad(p.Shape.Experts)
		load.Add(drawn)
		if got := load.Ranks(p.Layout).MaxOverMean.Float64(); target && math.Abs(got-aim) > 0.02 {
			return plan, fmt.Errorf("%v cannot have a max/mean of %g over %d ranks, but %.2f", p.Shape, aim,
				p.Layout.Ranks(), got)
		}
		for s := range ids {
			ids[s] = append(ids[s], drawn[s*drawnRows*p.Shape.TopK:][:drawnRows*p.Shape.TopK]...)
		}
	}
	return Plan{Name: fmt.Sprintf("%s/2 seed=%d", name, o.Seed), Extent: Extent{Rows: layers * drawnRows, Layers: layers},
		Fill: func(dst []int32, rank int) {
			for len(dst) > 0 {
				dst = dst[copy(dst, ids[p.source(rank)]):]
			}
		}}, nil
}

// drawLayer draws the rows of one layer, source after source. A token has the k experts with the largest
// log weight + Gumbel noise, within groups where there are some. An expert that is to be in a share p of the
// tokens has the weight −ln(1 − p).
func (p Problem) drawLayer(share []float64, random *rand.Rand) []int32 {
	gate := router.Gate{Method: router.Renormalize, Shape: p.Shape}
	if gate.Shape.Grouped() {
		gate.Method = router.DeepSeekV3
	}
	chooser, _ := router.NewRouter(gate) // of a problem's shape, which is valid
	weight, score := make([]float64, len(share)), make([]float32, len(share))
	for e, x := range share {
		weight[e] = math.Log(-math.Log1p(-min(x*float64(p.Shape.TopK), mostOften)))
	}
	ids := make([]int32, len(p.sources())*drawnRows*p.Shape.TopK)
	for token := range slices.Chunk(ids, p.Shape.TopK) {
		for e, w := range weight {
			score[e] = float32(max(leastScore, w-math.Log(random.ExpFloat64())))
		}
		chooser.Route(score, token, nil)
	}
	p.settle(ids, share, random)
	return ids
}

// An expert is drawn by at most mostOften of the tokens, and one that nobody chooses has leastScore.
const (
	mostOften  = 0.999
	leastScore = -60
)

// settle gives slots of experts that come too often to experts that come too seldom, as long as some token
// may have these, until each has its share of the slots.
func (p Problem) settle(ids []int32, share []float64, random *rand.Rand) {
	left := make([]float64, len(share)) // slots that each expert lacks
	for e, x := range share {
		left[e] = math.Round(x * float64(len(ids)))
	}
	for _, e := range ids {
		left[e]--
	}
	for _, i := range random.Perm(len(ids)) {
		e := ids[i]
		if left[e] >= 0 {
			continue
		}
		token := ids[i/p.Shape.TopK*p.Shape.TopK:][:p.Shape.TopK]
		first := random.IntN(len(left))
		for n := range left {
			f := (first + n) % len(left)
			if left[f] <= 0 || slices.Contains(token, int32(f)) {
				continue
			}
			ids[i] = int32(f)
			if _, groups := repeatsAndGroups(p.Shape, token); groups <= p.Shape.GroupLimit() {
				left[e], left[f] = left[e]+1, left[f]-1
				break
			}
			ids[i] = e
		}
	}
}

// skewed is the share of each expert where one rank gets so many times the mean, the others
// equally much, and the experts of a rank differ a little.
func (p Problem) skewed(target float64, hot int, random *rand.Rand) []float64 {
	ranks, share := p.Layout.Ranks(), make([]float64, p.Shape.Experts)
	sum, owner := make([]float64, ranks), func(e int) int { return p.Layout.Places(e)[0] }
	for e := range share {
		share[e] = math.Exp(0.3 * random.NormFloat64())
		sum[owner(e)] += share[e]
	}
	for e := range share {
		rank := (float64(ranks) - target) / float64(ranks-1)
		if owner(e) == hot {
			rank = target
		}
		share[e] *= max(0, rank) / float64(ranks) / sum[owner(e)]
	}
	return share
}

// shares are counts over their sum.
func shares(counts []float64) ([]float64, error) {
	total, share := floats.Sum(counts), slices.Clone(counts)
	for e := range share {
		share[e] /= total
	}
	if most := slices.Max(share); !(slices.Min(counts) >= 0 && most > 0 && most <= 1) { // nor NaN
		return nil, fmt.Errorf("want counts of 0 or more slots, finite and not all 0, have %.40v", counts)
	}
	return share, nil
}
