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

	"github.com/moebalance/moebalance/router"
)

// The names of drawn plans: a prefix and the max/mean over ranks, or a checksum of counts.
const (
	targetPrefix   = "target-"
	recordedPrefix = "recorded-"
)

// Target names the plan whose busiest rank gets so many times the mean: 1.2 → "target-1.2".
func Target(maxOverMean float64) string {
	return targetPrefix + strconv.FormatFloat(maxOverMean, 'f', -1, 64)
}

// Recorded reads the counts that a plan follows, {"logical_count": [[…], …]}, a list of
// experts for each layer, or such lists for each step. It names the plan after the text.
func Recorded(text []byte) (name string, counts [][]float64, err error) {
	var layers struct {
		Count [][]float64 `json:"logical_count"`
	}
	var steps struct {
		Count [][][]float64 `json:"logical_count"`
	}
	if json.Unmarshal(text, &layers) == nil {
		steps.Count = [][][]float64{layers.Count}
	} else if err := json.Unmarshal(text, &steps); err != nil {
		return "", nil, fmt.Errorf("want {\"logical_count\": [[…], …]}, a list of experts for each layer: %w", err)
	}
	for _, step := range steps.Count {
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
	levelRows   = 64  // from which on any batch has the shares of the whole table
	sampleRows  = 8192
	mostDrawn   = 1 << 26 // ids of all layers and sources
)

// drawn is a table of random tokens for each layer. A token takes the k experts of the
// largest popularity + Gumbel noise, so that experts come as often as they are popular; with
// groups the method's own choice of groups decides first. Popularities are fitted to what the
// plan is to reach: a max/mean over ranks, or the recorded share of each expert.
type drawn struct {
	problem Problem
	name    string
	seed    uint64
	router  *router.Router
	layers  int
	ids     [][]int32 // by source: the rows of all layers
}

func newDrawn(name string, p Problem, o Options) (Plan, error) {
	method := router.Renormalize
	if p.Shape.Grouped() {
		method = router.DeepSeekV3
	}
	chooser, err := router.NewRouter(router.Gate{Method: method, Shape: p.Shape})
	if err != nil {
		return nil, err
	}
	d := &drawn{problem: p, name: fmt.Sprintf("%s/1 seed=%d", name, o.Seed), seed: o.Seed, router: chooser,
		layers: drawnLayers}
	text, target := strings.CutPrefix(name, targetPrefix)
	aim, err := strconv.ParseFloat(text, 64)
	switch {
	case target && (err != nil || !(aim >= 1) || Target(aim) != name):
		return nil, fmt.Errorf("want a max/mean over ranks of at least 1, have %q", text)
	case !target && (len(o.Counts) == 0 || len(o.Counts[0]) != p.Shape.Experts):
		return nil, fmt.Errorf("want counts of %d experts for each layer, have none, or others", p.Shape.Experts)
	case !target:
		d.layers = len(o.Counts)
	}
	if slots := d.layers * drawnRows * len(p.Sources()) * p.Shape.TopK; slots > mostDrawn {
		return nil, fmt.Errorf("%w: %d layers of %d ranks are more than can be drawn", router.ErrShape, d.layers,
			len(p.Sources()))
	}
	d.ids = make([][]int32, len(p.Sources()))
	for layer := range d.layers {
		noise := d.noise(layer)
		var popular []float64
		if target {
			popular, err = d.aim(noise, layer, aim)
		} else {
			popular, err = d.follow(noise, o.Counts[layer])
		}
		if err != nil {
			return nil, err
		}
		for s := range d.ids {
			ids, err := d.choose(noise[s], popular)
			if err != nil {
				return nil, err
			}
			d.ids[s] = append(d.ids[s], d.level(ids)...)
		}
	}
	return d, nil
}

// Name holds the seed, such as "target-1.2/1 seed=0".
func (d *drawn) Name() string { return d.name }

// Extent is one table for each layer.
func (d *drawn) Extent() Extent { return Extent{Rows: d.layers * drawnRows, Layers: d.layers} }

func (d *drawn) Fill(dst []int32, rank int) {
	ids := d.ids[d.problem.source(rank)]
	for len(dst) > 0 {
		dst = dst[copy(dst, ids):]
	}
}

// noise is Gumbel noise for the rows of each source, drawn anew for each layer.
func (d *drawn) noise(layer int) [][]float64 {
	noise := matrix[float64](len(d.ids), drawnRows*d.problem.Shape.Experts)
	for s := range noise {
		random := rand.New(rand.NewPCG(d.seed, uint64(layer)<<32|uint64(s)))
		for i := range noise[s] {
			noise[s][i] = -math.Log(random.ExpFloat64())
		}
	}
	return noise
}

// choose is what rows of noise choose by a popularity.
func (d *drawn) choose(noise, popular []float64) ([]int32, error) {
	experts, k := len(popular), d.problem.Shape.TopK
	ids, score := make([]int32, 0, len(noise)/experts*k), make([]float32, experts)
	token, most := make([]int32, k), slices.Max(popular)
	for row := range slices.Chunk(noise, experts) {
		for e, g := range row {
			score[e] = float32(popular[e] - most + g)
		}
		if err := d.router.Route(score, token, nil); err != nil {
			return nil, err
		}
		ids = append(ids, token...)
	}
	return ids, nil
}

// load is what the first rows of all sources choose by a popularity.
func (d *drawn) load(noise [][]float64, popular []float64) (router.Load, error) {
	load, rows := router.NewLoad(len(popular)), min(drawnRows, max(1, sampleRows/len(noise)))
	for _, n := range noise {
		ids, err := d.choose(n[:rows*len(popular)], popular)
		if err != nil {
			return load, err
		}
		load.Add(ids)
	}
	return load, nil
}

// aim finds the popularity of a hot rank's experts by which it gets so many times the mean,
// between none and one that doubles, by false position. The other experts differ a little, too.
func (d *drawn) aim(noise [][]float64, layer int, target float64) ([]float64, error) {
	experts, ranks := d.problem.Shape.Experts, d.problem.Layout.Ranks()
	random, hot := rand.New(rand.NewPCG(d.seed, uint64(layer)<<32|1<<31)), layer*ranks/d.layers
	shape, popular := make([]float64, experts), make([]float64, experts)
	for e := range shape {
		shape[e] = 0.3 * random.NormFloat64()
		if d.problem.Layout.Places(e)[0].Rank == hot {
			shape[e]++
		}
	}
	above := func(s float64) (float64, error) {
		for e, x := range shape {
			popular[e] = s * x
		}
		load, err := d.load(noise, popular)
		return load.Ranks(d.problem.Layout).MaxOverMean.Float64() - target, err
	}
	low, high := 0.0, 0.5
	least, err := above(low)
	switch {
	case err != nil || math.Abs(least) < 0.02:
		return popular, err
	case least > 0:
		return nil, fmt.Errorf("want a max/mean over %d ranks from %.2f on, have %g", ranks, target+least, target)
	}
	most, err := above(high)
	for most < 0 && high < 64 && err == nil {
		low, least, high = high, most, 2*high
		most, err = above(high)
	}
	if most < 0 && err == nil {
		err = fmt.Errorf("want a max/mean over %d ranks up to %.2f, have %g", ranks, target+most, target)
	}
	if err != nil {
		return nil, err
	}
	for range 24 {
		s := (low*most - high*least) / (most - least)
		at, err := above(s)
		switch {
		case err != nil || math.Abs(at) < 0.003:
			return popular, err
		case at < 0:
			low, least, most = s, at, most/2 // of an end that stays, half: it moves sooner
		default:
			high, most, least = s, at, least/2
		}
	}
	return popular, nil
}

// follow finds the popularity by which each expert comes as often as counted: it adds the
// logarithm of what is missing, again and again, while that helps.
func (d *drawn) follow(noise [][]float64, counts []float64) ([]float64, error) {
	total := 0.0
	for e, n := range counts {
		if !(n >= 0) || math.IsInf(n, 1) {
			return nil, fmt.Errorf("want counts of 0 or more slots, have %v of expert %d", n, e)
		}
		total += n
	}
	if !(total > 0) {
		return nil, fmt.Errorf("want counts of a layer that are not all 0")
	}
	want, popular, best, least := make([]float64, len(counts)), make([]float64, len(counts)), []float64{}, math.Inf(1)
	for e, n := range counts {
		want[e] = min(0.999, n/total*float64(d.problem.Shape.TopK))
		popular[e] = math.Log(want[e] + 1e-6)
	}
	for range 20 {
		load, err := d.load(noise, popular)
		if err != nil {
			return nil, err
		}
		rows := float64(load.Total()) / float64(d.problem.Shape.TopK)
		off, next := 0.0, slices.Clone(popular)
		for e, n := range load.PerExpert {
			off = max(off, math.Abs(float64(n)/rows-want[e]))
			next[e] += 0.7 * math.Log((want[e]+1/rows)/(float64(n)/rows+1/rows))
		}
		if off >= least {
			break
		}
		best, least, popular = popular, off, next
	}
	return best, nil
}

// level orders rows so that their first ones, and so small batches, have the ranks' shares of
// all rows: each next row brings the total nearest to them.
func (d *drawn) level(ids []int32) []int32 {
	k, ranks := d.problem.Shape.TopK, d.problem.Layout.Ranks()
	share, total := make([]float64, ranks), make([]float64, ranks)
	rank := func(e int32) int { return d.problem.Layout.Places(int(e))[0].Rank }
	for _, e := range ids {
		share[rank(e)] += float64(k) / float64(len(ids))
	}
	for t := range min(levelRows, len(ids)/k) {
		best, least := t, math.Inf(1)
		for row := t; row < len(ids)/k; row++ {
			off := 0.0
			for _, e := range ids[row*k : (row+1)*k] {
				total[rank(e)]++
			}
			for r, n := range total {
				off += (n - float64(t+1)*share[r]) * (n - float64(t+1)*share[r])
			}
			for _, e := range ids[row*k : (row+1)*k] {
				total[rank(e)]--
			}
			if off < least {
				best, least = row, off
			}
		}
		for i := range k {
			ids[t*k+i], ids[best*k+i] = ids[best*k+i], ids[t*k+i]
			total[rank(ids[t*k+i])]++
		}
	}
	return ids
}
