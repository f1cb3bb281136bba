package trace

import (
	"fmt"
	"path/filepath"
	"testing"
)

// clockedRank is an export of one rank whose capture began at session (UTC) and
// whose clock is then ahead by some error that the session time does not show.
// Arrivals and ends are in true time.
func clockedRank(t *testing.T, rank, session, ahead int64, arrivals, ends []int64) string {
	f := newFixture().environment(fmt.Sprintf(`RANK="%d"`, rank)).environment(`WORLD_SIZE="2"`)
	if session != 0 {
		f.sql("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (%d)", session)
	}
	for i := range arrivals {
		at := func(true int64) int64 { return true - session + ahead }
		f.push(rank, at(arrivals[i])-20, at(ends[i]), "layer 0 dispatch")
		f.call(rank, int64(i+1), at(arrivals[i])-10).kernel(rank, int64(i+1), at(arrivals[i]), at(ends[i]),
			"ncclDevKernel_SendRecv(x)")
	}
	return f.write(t, fmt.Sprintf("rank%d.sqlite", rank))
}

func TestWaitAcrossReports(t *testing.T) {
	// Both leave at 2100, 2200 and 2300. Rank 0 arrives at 2000, 2190, 2230 and
	// rank 1 at 2080, 2150, 2290: rank 0 waits 80 + 0 + 60, rank 1 0 + 40 + 0.
	// Rank 1's capture began 300 later and its clock is 7 ahead of what that says.
	ends := []int64{2100, 2200, 2300}
	a := clockedRank(t, 0, 1000, 0, []int64{2000, 2190, 2230}, ends)
	b := clockedRank(t, 1, 1300, 7, []int64{2080, 2150, 2290}, ends)
	trace := mustRead(t, Options{}, b, a)
	near(t, "rank 0 waits", trace.Collectives[0].WaitNS, 140)
	near(t, "rank 0 transfers 20 + 10 + 10", trace.Collectives[0].TransferNS, 40)
	near(t, "rank 1 waits", trace.Collectives[1].WaitNS, 40)
	near(t, "rank 1 transfers 20 + 10 + 10", trace.Collectives[1].TransferNS, 40)
	equal(t, "offset: 300 later, 7 ahead", trace.Alignment[1].OffsetNS, 300-7)
	equal(t, "basis", trace.Alignment[1].Basis, "collective ends")
	near(t, "residual", trace.Alignment[1].ResidualNS, 0)
	if hasWarning(trace.Warnings, "skew") {
		t.Errorf("have %v", trace.Warnings)
	}

	// Ends that do not agree: 0, 500 and −400 apart. Moved by the median, 0, they
	// stay 400 apart in the median, far more than anybody transfers.
	c := clockedRank(t, 1, 1300, 0, []int64{2080, 2150, 2290}, []int64{2100, 2700, 2300})
	d := clockedRank(t, 0, 1000, 0, []int64{2000, 2190, 2230}, []int64{2100, 2200, 2700})
	if trace := mustRead(t, Options{}, c, d); !hasWarning(trace.Warnings, "skew") {
		t.Errorf("have %+v, %v", trace.Alignment, trace.Warnings)
	}
}

// A rank that arrives after its peers left (an error of the clock) does not wait
// a negative time, and nobody waits longer than its own kernel lasts.
func TestWaitIsWithinTheKernel(t *testing.T) {
	paths, _ := filepath.Glob(filepath.Join(testdata, "*/*.rank?.sqlite"))
	for folder := range map[string]bool{"gptoss-ep4-ranks/normal": true, "gptoss-ep4-ranks/perfect": true,
		"deepseek-ep4-ranks/normal": true, "deepseek-ep4-ranks/perfect": true} {
		own, _ := filepath.Glob(filepath.Join(testdata, folder+".rank?.sqlite"))
		if len(own) != 4 || len(paths) != 24 {
			t.Fatalf("want 4 of 24 exports, have %d of %d", len(own), len(paths))
		}
		for _, c := range mustRead(t, Options{}, own...).Collectives {
			if c.WaitNS < 0 || c.TransferNS < 0 || float64(c.WaitNS+c.TransferNS) != float64(c.TotalNS) {
				t.Errorf("%s: %+v", folder, c)
			}
		}
	}
}
