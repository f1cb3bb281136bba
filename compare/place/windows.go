package place

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/router"
)

// Window is recorded counts from which a placement is learned, or on which it is judged.
type Window struct {
	Name       string `json:"window"` // the source, with its iterations where it was divided
	Iterations int    `json:"iterations"`
	Slots      int64  `json:"slots"`
	record     *counts.Record
	loads      map[int]router.Load // over all iterations, by layer
	shares     map[int][]float64   // of each expert, by layer with load
	most       int64               // slots of a layer

	alike, again bool // of a judged window: a learned one resembles it, or has its counts
}

func windowOf(name string, r *counts.Record) Window {
	w := Window{Name: name, Iterations: len(r.Iterations()), record: r, loads: r.ByLayer(), shares: map[int][]float64{}}
	for layer, load := range w.loads {
		total := load.Total()
		if w.Slots, w.most = w.Slots+total, max(w.most, total); total > 0 {
			for _, slots := range load.PerExpert {
				w.shares[layer] = append(w.shares[layer], float64(slots)/float64(total))
			}
		}
	}
	return w
}

// Whole takes each record as a window, or each kind of work in one that tells them apart.
func Whole(records []*counts.Record) []Window {
	list := []Window{}
	for _, r := range records {
		for _, part := range r.Phases() {
			name := r.Source
			if part.Phase != "" {
				name += fmt.Sprintf(" (%s)", part.Phase)
			}
			list = append(list, windowOf(name, part))
		}
	}
	return list
}

// maxParts is the most windows in either half of a single record: enough to see a gain decay,
// each of two iterations or more.
const maxParts = 4

// Halves divides a single record into windows to learn from, its first half, and windows to
// judge on, the rest, up to maxParts each: 10 iterations → 2 + 2 windows. Nothing is left to
// judge on where there is one iteration, or where there are several records: Judge leaves
// records out in turn.
func Halves(records []*counts.Record) (learn, judge []Window) {
	if len(records) > 1 || len(records[0].Iterations()) < 2 {
		return Whole(records), nil
	}
	for _, kind := range records[0].Phases() { // each has its own iterations
		iterations := kind.Iterations()
		half := (len(iterations) + 1) / 2
		learn = append(learn, parts(kind, iterations[:half])...)
		judge = append(judge, parts(kind, iterations[half:])...)
	}
	return learn, judge
}

// parts divides some iterations of a record of one kind of work into at most maxParts windows, each of two or more.
func parts(record *counts.Record, iterations []int64) (windows []Window) {
	n := min(maxParts, max(1, len(iterations)/2), len(iterations))
	for i := range n {
		part := iterations[i*len(iterations)/n : (i+1)*len(iterations)/n]
		first, last := part[0], part[len(part)-1]
		name := fmt.Sprintf("iterations %d to %d", first, last)
		if len(part) == 1 {
			name = fmt.Sprintf("iteration %d", first)
		}
		if record.Phase != "" {
			name = string(record.Phase) + ", " + name
		}
		windows = append(windows, windowOf(fmt.Sprintf("%s (%s)", record.Source, name), record.Between(first, last)))
	}
	return windows
}

// repeats reports whether a window has the counts of another again, as where a benchmark sends the same tokens in every
// step: to judge on it is to judge on the other. Shares are equal, or within a third of what chance brings, over at
// least 30 experts of all layers.
func (w Window) repeats(other Window) bool {
	d, experts := distance(w.shares, other.shares), w.record.Experts
	slots, layers := float64(w.Slots), float64(len(w.shares))
	// Of tokens that are not the same again: 256 experts and 10 million slots of a layer in both windows → 0.003.
	byChance := 0.4 * math.Sqrt(float64(experts)*(layers/slots+float64(len(other.shares))/float64(other.Slots)))
	return d == 0 || float64(experts)*layers >= 30 && d < byChance/3
}

// nearlySame is the most total variation of expert shares, mean over layers, between windows
// that count as one: steps of one run differ by less, other traffic by more.
const nearlySame = 0.03

// resembles reports a window that counts as one with another.
func (w Window) resembles(other Window) bool { return distance(w.shares, other.shares) <= nearlySame }

// clusters joins each window with those that are nearly the same as one of its cluster: three
// windows 2 % apart in a row → one cluster. Windows without load say nothing.
func clusters(windows []Window) (list [][]Window) {
	for _, w := range windows {
		if len(w.shares) == 0 {
			continue
		}
		near := func(c []Window) bool { return slices.ContainsFunc(c, w.resembles) }
		at := slices.IndexFunc(list, near)
		if at < 0 {
			list = append(list, []Window{w})
			continue
		}
		for i := len(list) - 1; i > at; i-- {
			if near(list[i]) {
				list[at], list = append(list[at], list[i]...), slices.Delete(list, i, i+1)
			}
		}
		list[at] = append(list[at], w)
	}
	return list
}

// distance is the total variation between shares of experts, mean over the layers of both:
// (0.7, 0.3) and (0.5, 0.5) → 0.2.
func distance(a, b map[int][]float64) float64 {
	sum, n := 0.0, 0.0
	for _, layer := range slices.Sorted(maps.Keys(a)) {
		long, short := a[layer], b[layer]
		if len(long) < len(short) {
			long, short = short, long
		}
		if len(short) == 0 {
			continue
		}
		n++
		for e, share := range long {
			if e < len(short) {
				share -= short[e]
			}
			sum += math.Abs(share) / 2
		}
	}
	return sum / n // undefined without a common layer, which is no small distance
}

// clusterShares are the mean shares of each expert in each cluster of nearly equal windows, by
// layer with load, so that no window counts for more because it came often.
func clusterShares(windows []Window, experts int) map[int][][]float64 {
	byLayer := map[int][][]float64{}
	for _, cluster := range clusters(windows) {
		sums, n := map[int][]float64{}, map[int]float64{}
		for _, w := range cluster {
			for layer, share := range w.shares {
				if sums[layer] == nil {
					sums[layer] = make([]float64, experts)
				}
				n[layer]++
				for e, v := range share {
					sums[layer][e] += v
				}
			}
		}
		for layer, sum := range sums {
			for e := range sum {
				sum[e] /= n[layer]
			}
			byLayer[layer] = append(byLayer[layer], sum)
		}
	}
	return byLayer
}

// fold is windows that are left out, and the windows that are learned from instead.
type fold struct{ held, rest []Window }

// mostFolds bounds how often something is left out; of more clusters, several are at once.
const mostFolds = 6

// folds leave each cluster out, or several of many: seven clusters → six folds, the first of
// two clusters.
func folds(clusters [][]Window) []fold {
	list := make([]fold, min(len(clusters), mostFolds))
	for i := range list {
		for j, c := range clusters {
			if j%len(list) == i {
				list[i].held = append(list[i].held, c...)
			} else {
				list[i].rest = append(list[i].rest, c...)
			}
		}
	}
	return list
}
