package trace

import (
	"fmt"
	"testing"

	"github.com/moebalance/moebalance/compare/trace/wait"
)

// lateRank is a run of 16 ranks and 50 steps, each rank with a clock of its own: attention for
// 100 µs, dispatch, experts for 300 µs, combine. Hosts launch 50 µs ahead, but for rank 11: in
// step 37 it collects garbage for 900 µs before its attention.
func lateRank(t *testing.T) (paths []string) {
	const us, steps, ranks = 1000, 50, 16
	late := func(rank, step int) int64 {
		if rank == 11 && step == 37 {
			return 900 * us
		}
		return 0
	}
	for rank := range ranks {
		f := newFixture().environment(fmt.Sprintf(`RANK="%d"`, rank)).environment(`WORLD_SIZE="16"`)
		clock := int64(rank) * 7_654_321
		f.sql("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (%d)", 1_700_000_000_000_000_000-clock+int64(rank%3)*500*us)
		now, id := clock+1000*us, int64(0)
		run := func(host int64, start, end int64, name string) {
			id++
			f.call(0, id, host).kernel(0, id, start, end, name)
		}
		for step := range steps {
			begin := now
			waited := late(11, step)
			own := late(rank, step)
			if own > 0 {
				f.push(0, now-50*us, now-50*us+own, "Python GC")
			}
			host := now - 50*us + own
			start := max(now, host+us)
			f.push(0, host, host+40*us, fmt.Sprintf("step %d", step))
			f.push(0, host, host+40*us, "layer 0")
			run(host, start, start+100*us, "flash_fwd_kernel<x>")
			arrive, leave := start+100*us, begin+110*us
			if waited > 0 {
				leave += waited - 50*us + us
			}
			run(host+5*us, arrive, leave, "ncclDevKernel_SendRecv(x)")
			run(host+10*us, leave, leave+300*us, "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cutlass::gemm::GroupProblemShape<x>>>(T1::Params)")
			run(host+15*us, leave+300*us, leave+310*us, "ncclDevKernel_AllGather_RING_LL(x)")
			now = leave + 310*us
		}
		paths = append(paths, f.write(t, fmt.Sprintf("late.rank%d.sqlite", rank)))
	}
	return paths
}

// The one late rank of 16 in one step of 50, seen through 16 clocks, in exports and in their
// summaries: the others wait 851 µs for it, all while its host collects garbage.
func TestLateRankOfManyClocks(t *testing.T) {
	paths := lateRank(t)
	var summaries []string
	for _, path := range paths {
		summaries = append(summaries, summaryOf(t, path))
	}
	for _, paths := range [][]string{paths, summaries} {
		w := mustRead(t, Options{Threshold: 0.1}, paths...).Waiting
		if len(w.Late) != 1 {
			t.Fatalf("have %+v", w)
		}
		l := w.Late[0]
		equal(t, "step", l.Step, 37)
		equal(t, "rank", l.Rank, 11)
		near(t, "the ranks wait", l.WaitNS, 851e3*15/16)
		equal(t, "cause", l.Name, wait.LateHosts)
		equal(t, "host", l.Did, wait.CollectsGarbage)
		near(t, "usually", l.UsualNS, 0)
		equal(t, "the rank that is last", w.Ranks[0].LastSteps, 1)
	}
}
