package trace

import (
	"github.com/moebalance/moebalance/compare/trace/wait"
	"testing"
)

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
		w := mustRead(t, Options{}, path).Waiting
		if len(w.Ranks) != 1 {
			t.Fatalf("have %+v", w)
		}
		equal(t, "last", w.Ranks[0].Rank, 1)
		near(t, "wait", w.WaitNS, 35)
		near(t, "host: 70 idle, over two ranks", w.Parts.HostNS, 70.0/2)
		equal(t, "cause", w.Name, wait.LateHosts)
		near(t, "unexplained", w.Parts.UnexplainedNS, 0)
	}
}
