package trace

import (
	"math"
	"testing"

	"github.com/moebalance/moebalance/compare/replay"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

// The GPU of rank 1 is free from 200 on. Its host collects garbage from 150 to 230,
// waits for Python's lock from 240 to 250, and launches the experts by a call that
// returns at 261; they begin at 270. The call for the collective comes in time. Where the host collects garbage
// until 240, that is most of the 61 ns.
func TestHostLatenessNamesPython(t *testing.T) {
	for until, did := range map[int64]Deed{230: "", 240: deedNames[collecting]} {
		f := newFixture()
		for p := range int64(2) {
			f.push(p, 0, 1000, "step 0").push(p, 0, 1000, "layer 0 experts")
			f.call(p, 1, 10).kernel(p, 1, 100, 200, "ncclDevKernel_SendRecv(x)")
			f.call(p, 2, []int64{20, 260}[p]).kernel(p, 2, []int64{200, 270}[p], []int64{300, 370}[p], "gemm")
			f.call(p, 3, 30+240*p).kernel(p, 3, []int64{310, 380}[p], 500, "ncclDevKernel_SendRecv(x)")
		}
		path := f.push(1, 150, until, "Python GC").push(1, 240, 250, "Waiting for GIL").push(0, 205, 220,
			"Python GC").write(t, "x.sqlite")
		for _, path := range []string{path, summaryOf(t, path)} {
			w := mustRead(t, Options{}, path).Waiting
			if len(w.Ranks) != 1 {
				t.Fatalf("have %+v", w)
			}
			equal(t, "last", w.Ranks[0].Rank, 1)
			require.Near(t, "wait", w.WaitNS, 35, 1e-6)
			require.Near(t, "host: 70 idle, over two ranks", w.NS, 70.0/2, 1e-6)
			equal(t, "cause", w.Name, LateHosts)
			equal(t, "did", w.Did, did)
		}
	}
}

// A cause is named only if it explains more than half, and so is what the host did.
func TestMainCause(t *testing.T) {
	for _, c := range []struct {
		of   replay.Wait
		did  deeds
		want string
		deed Deed
	}{
		{replay.Wait{Experts: 60, Other: 40}, deeds{0, 0, 9}, ExpertTime, ""},
		{replay.Wait{Experts: 40, Other: 35, Late: 25}, deeds{}, "", ""},
		{replay.Wait{Experts: 50, Late: 50}, deeds{}, "", ""},
		{replay.Wait{Experts: -60, Late: 160}, deeds{99, 0, 15, 14}, LateHosts, deedNames[collecting]},
		{replay.Wait{Experts: 70, Late: 90}, deeds{0, 1, 14, 15}, LateHosts, ""},
		{replay.Wait{Late: 90}, deeds{0, 1, 0, 0, 2}, LateHosts, Launches},
		{replay.Wait{Other: 51}, deeds{}, OtherCompute, ""},
		{replay.Wait{}, deeds{}, "", ""},
	} {
		c.of.NS = 100
		w := waited{c.of, c.did}
		if have := w.cause(); have.Name != c.want || have.NS.Defined() != (c.want != "") || have.Did != c.deed {
			t.Errorf("%+v: have %+v", c.of, have)
		}
	}
}

// In a step of 1000 ns, waiting for late launches leads above 100 ns, or above 10 where experts
// are uneven, and only if it is more than their loss.
func TestLeads(t *testing.T) {
	for _, c := range []struct {
		cause          string
		ns, wait, loss router.Number
		uneven, want   bool
	}{
		{LateHosts, 101, 150, 0, false, true},
		{LateHosts, 100, 150, 0, false, false},
		{LateHosts, 150, 100, 0, false, false}, // made up for by less of something else
		{LateHosts, 11, 15, 5, true, true},
		{LateHosts, 11, 15, 5, false, false},
		{LateHosts, 10, 15, 5, true, false},
		{LateHosts, 150, 200, 151, true, false},
		{ExpertTime, 500, 500, 0, true, false},
		{LateHosts, router.Number(math.NaN()), 500, 0, true, false},
	} {
		w := Waiting{WaitNS: c.wait, Cause: Cause{Name: c.cause, NS: c.ns}}
		if have := w.Leads(c.loss, 1000, c.uneven); have != c.want {
			t.Errorf("%+v: %t", c, have)
		}
	}
}
