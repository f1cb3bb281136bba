package nsys

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// Who arrives last at the collective behind each layer's experts, by how much after the
// mean, and what of it is host lateness: worked out by Python from the tables and the
// JSON, with clocks moved by the median distance of the collectives' ends. In µs, mean
// over the steps that count.
func TestWhoWaitsForWhom(t *testing.T) {
	type row struct {
		last, most int
		wait, host float64
	}
	for pattern, layers := range map[string][]row{
		"gptoss-ep4-loop/normal.sqlite":          {{2, 3, 580.7, 558.6}, {2, 1, 366.1, 484.6}, {2, 1, 437.9, 589.0}},
		"deepseek-ep4-ranks/normal.rank?.sqlite": {{2, 2, 626.7, -100.7}, {2, 2, 146.5, -10.9}},
		"gptoss-ep4-ranks/normal.rank?.sqlite":   {{2, 3, 375.4, 364.1}, {0, 1, 171.5, 245.5}, {0, 1, 1417.9, 1327.7}},
		"hf-qwen3-ep4-nsys/normal.rank?.sqlite":  {{1, 1, 1762.4, 48.8}, {0, 0, 867.8, 0}, {1, 1, 1770.0, 0}},
		"hf-qwen3-ep4/normal.rank?.json.gz":      {{1, 1, 1547.8, -126.2}, {0, 0, 719.0, 0}, {1, 1, 1737.1, 0}},
	} {
		paths, _ := filepath.Glob(filepath.Join(testdata, pattern))
		waits := mustRead(t, Options{}, paths...).Waits
		if len(waits) != len(layers) {
			t.Fatalf("%s: want %d layers, have %+v", pattern, len(layers), waits)
		}
		for i, w := range waits {
			want := layers[w.Layer]
			if w.LastRank != want.last || w.MostExpertRank != want.most || w.Agrees != (want.last == want.most) ||
				!strings.HasPrefix(w.Collective, "ncclDevKernel_") {
				t.Errorf("%s: want %+v, have %+v", pattern, want, w)
			}
			within := func(what string, have router.Number, want float64) {
				if d := float64(have)/1e3 - want; d > 0.06 || d < -0.06 {
					t.Errorf("%s layer %d: %s %.2f µs, want %.1f", pattern, w.Layer, what, have/1e3, want)
				}
			}
			within("wait", w.WaitNS, want.wait)
			within("host", w.Parts.HostNS, want.host)
			p := w.Parts
			within("sum", p.ExpertNS+p.OtherNS+p.KernelsNS+p.HostNS+p.UnexplainedNS, float64(w.WaitNS)/1e3)
			if i > 0 && w.WaitNS > waits[i-1].WaitNS {
				t.Errorf("%s: the longest wait is not first", pattern)
			}
		}
	}
	one := mustRead(t, Options{}, filepath.Join(testdata, "deepseek-ep4-ranks/normal.rank0.sqlite"))
	if len(one.Waits) != 0 || !hasWarning(one.Warnings, "no_wait") {
		t.Errorf("one rank waits for nobody known: have %+v", one.Waits)
	}
}

// The GPU of rank 1 is free from 200 on. Its host collects garbage from 150 to 230,
// waits for Python's lock from 240 to 250, and launches the experts by a call that
// returns at 261; they begin at 270. The call for the collective comes in time.
func TestHostLatenessNamesPython(t *testing.T) {
	f := newFixture()
	for p := range int64(2) {
		f.push(p, 0, 1000, "step 0").push(p, 0, 1000, "layer 0 experts")
		f.call(p, 1, 10).kernel(p, 1, 100, 200, "ncclDevKernel_SendRecv(x)")
		f.call(p, 2, []int64{20, 260}[p]).kernel(p, 2, []int64{200, 270}[p], []int64{300, 370}[p], "gemm")
		f.call(p, 3, 30+240*p).kernel(p, 3, []int64{310, 380}[p], 500, "ncclDevKernel_SendRecv(x)")
	}
	path := f.push(1, 150, 230, "Python GC").push(1, 240, 250, "Waiting for GIL").push(0, 205, 220,
		"Python GC").write(t, "x.sqlite")
	for _, path := range []string{path, summaryOf(t, path)} {
		waits := mustRead(t, Options{}, path).Waits
		if len(waits) != 1 {
			t.Fatalf("have %+v", waits)
		}
		w := waits[0]
		equal(t, "last", w.LastRank, 1)
		near(t, "wait", w.WaitNS, 35)
		near(t, "host: 61 of 70 idle, over two ranks", w.Parts.HostNS, 61.0/2)
		near(t, "of it garbage collection", w.GCNS, 30.0/2)
		near(t, "of it the lock", w.GILNS, 10.0/2)
		near(t, "unexplained", w.Parts.UnexplainedNS, 9.0/2)
	}
}
