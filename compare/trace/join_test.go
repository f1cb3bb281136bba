package trace

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// phaseTime is the time of one rank, layer and phase.
func phaseTime(trace *Trace, rank int, layer router.OptInt, phase Phase) int64 {
	for _, p := range trace.Phases {
		if p.Rank == rank && p.Layer == layer && p.Phase == phase {
			return p.TotalNS
		}
	}
	return 0
}

func hasWarning(list []router.Warning, code string) bool {
	return slices.ContainsFunc(list, func(w router.Warning) bool { return w.Code == code })
}

func TestJoinTraps(t *testing.T) {
	for _, c := range []struct {
		what    string
		make    func(*fixture)
		warning string // codes
		layer   router.OptInt
		phase   Phase
		want    int64 // ns on rank 0
	}{
		{"the same correlation id in another process is another launch", func(f *fixture) {
			f.push(0, 0, 50, "layer 0 experts").work(0, 1, 10, 7, "gemm")
			f.push(1, 0, 50, "layer 1 experts").work(1, 1, 10, 5, "gemm")
		}, "", 0, PhaseExperts, 7},
		{"a kernel without a launch row is unknown, not lost", func(f *fixture) {
			f.push(0, 0, 50, "layer 0 experts").kernel(0, 9, 20, 29, "k")
		}, "no_launch", NoID, PhaseUnknown, 9},
		{"NULL is no correlation id", func(f *fixture) {
			f.push(0, 0, 50, "layer 0 experts").kernel(0, 9, 20, 29,
				"k").sql("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET correlationId = NULL").call(0, 0, 10)
		}, "lost_kernels no_launch", NoID, PhaseUnknown, 9},
		{"a reused id goes to the last call before the kernel", func(f *fixture) {
			f.push(0, 0, 50, "layer 0 experts").push(0, 100, 150, "layer 1 experts").push(0, 200, 250,
				"layer 2 experts")
			f.call(0, 1, 10).call(0, 1, 110).call(0, 1, 210).kernel(0, 1, 120, 124, "k")
		}, "lost_kernels", 1, PhaseExperts, 4},
		{"the range of another thread says nothing", func(f *fixture) {
			f.work(0, 1, 10, 7, "k").push(0, 0, 50, "layer 0 experts").sql("UPDATE NVTX_EVENTS SET globalTid = %d", tid(0, 2))
		}, "", NoID, PhaseUnknown, 7},
		{"a registered name", func(f *fixture) {
			f.sql("INSERT INTO NVTX_EVENTS VALUES (0,50,59,NULL,%d,%d,NULL,0)", f.text("layer 4 experts"),
				tid(0, 1)).work(0, 1, 10, 7, "k")
		}, "", 4, PhaseExperts, 7},
		{"a start/end range", func(f *fixture) {
			f.sql("INSERT INTO NVTX_EVENTS VALUES (0,50,60,'layer 4 experts',NULL,%d,NULL,0)", tid(0, 1)).work(0, 1, 10,
				7, "k")
		}, "", 4, PhaseExperts, 7},
		{"a mark is no range", func(f *fixture) {
			f.sql("INSERT INTO NVTX_EVENTS VALUES (0,50,34,'layer 4 experts',NULL,%d,NULL,0)", tid(0, 1)).work(0, 1, 10,
				7, "k")
		}, "", NoID, PhaseUnknown, 7},
		{"an open range lasts to the end of the capture", func(f *fixture) {
			f.sql("INSERT INTO NVTX_EVENTS VALUES (0,NULL,59,'layer 4 experts',NULL,%d,NULL,0)", tid(0, 1)).work(0, 1,
				10, 7, "k")
		}, "", 4, PhaseExperts, 7},
		{"a kernel of no process is of the only one that launched", func(f *fixture) {
			f.push(0, 0, 50, "layer 0 experts").work(0, 1, 10, 7, "k").sql("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET globalPid = 0")
		}, "", 0, PhaseExperts, 7},
		{"PyTorch's suffix is cut", func(f *fixture) {
			f.push(0, 0, 50, "layer 0 experts, op_id = 314359").work(0, 1, 10, 7, "k")
		}, "", 0, PhaseExperts, 7},
		{"kernels that are recorded twice count once, of two at one time, too", func(f *fixture) {
			f.push(0, 0, 50, "layer 0 experts").work(0, 1, 10, 7, "k").work(0, 2, 10, 7, "k")
			f.work(0, 1, 10, 7, "k").work(0, 2, 10, 7, "k")
		}, "repeated", 0, PhaseExperts, 14},
		{"an event that ends before it begins is left out", func(f *fixture) {
			f.push(0, 0, 50, "layer 0 experts").work(0, 1, 10, 7, "k").work(0, 2, 30, -5, "k")
		}, "lost_kernels out_of_range", 0, PhaseExperts, 7},
		{"an impossible time is left out", func(f *fixture) {
			f.push(0, 0, 50, "layer 0 experts").work(0, 1, 10, 7, "k").kernel(0, 2, -9e18, 9e18, "k")
		}, "out_of_range", 0, PhaseExperts, 7},
		{"a replayed clone of a clone belongs where its origin was captured", func(f *fixture) {
			f.push(0, 0, 50, "layer 3 experts").push(0, 200, 300, "[Executor] _forward_step 0:")
			f.sql("INSERT INTO CUDA_GRAPH_NODE_EVENTS VALUES (10,10,%d,101,NULL),(60,60,%d,102,101),(70,70,%d,103,102)",
				tid(0, 1), tid(0, 1), tid(0, 1))
			f.work(0, 1, 210, 7, "k").sql("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET graphNodeId = 103")
		}, "", 3, PhaseExperts, 7},
		{"a chain of clones that bites its tail is unknown", func(f *fixture) {
			f.push(0, 0, 50, "layer 3 experts")
			f.sql("INSERT INTO CUDA_GRAPH_NODE_EVENTS VALUES (10,10,%[1]d,101,102),(12,12,%[1]d,102,101)", tid(0, 1))
			f.work(0, 1, 210, 7, "k").sql("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET graphNodeId = 101")
		}, "graph_capture", NoID, PhaseUnknown, 7},
	} {
		t.Run(c.what, func(t *testing.T) {
			f := newFixture()
			c.make(f)
			trace := mustRead(t, Options{}, f.write(t, "trap.sqlite"))
			if got := phaseTime(trace, 0, c.layer, c.phase); got != c.want {
				t.Errorf("want %d ns in layer %d, %s; have %+v", c.want, c.layer, c.phase, trace.Phases)
			}
			if w := trace.Exports[0].Warnings; !slices.EqualFunc(w, strings.Fields(c.warning),
				func(w router.Warning, code string) bool { return w.Code == code }) {
				t.Errorf("want warnings %q, have %v", c.warning, w)
			}
		})
	}
}

func TestRankEvidence(t *testing.T) {
	kernels := func(processes ...int64) *fixture {
		f := newFixture()
		for _, p := range processes {
			f.work(p, 1, 10, 7, "k")
		}
		return f
	}
	mpi := "CREATE TABLE MPI_RANKS (globalTid INTEGER, rank INTEGER); INSERT INTO MPI_RANKS VALUES (%d,5),(%d,4)"
	for _, c := range []struct {
		what     string
		fixture  *fixture
		file     string
		flag     map[string]int
		rank     int
		evidence string
	}{
		{"the flag before all", kernels(2).environment(`RANK="3"`), "x.rank4.sqlite",
			map[string]int{"x.rank4.sqlite": 9}, 9, "flag"},
		{"a quoted variable", kernels(2).environment(`RANK="3"`), "x.rank4.sqlite", nil, 3, "environment"},
		{"RANK before SLURM_PROCID", kernels(2).environment(`SLURM_PROCID="7"`).environment(`RANK="3"`), "x.sqlite",
			nil, 3, "environment"},
		{"no number", kernels(2).environment(`RANK="three"`), "x.rank4.sqlite", nil, 4, "file name"},
		{"the launcher's variable says nothing of its processes", kernels(2, 3).environment(`RANK="0"`), "x.sqlite",
			nil, 2, "device ordinal"},
		{"MPI_RANKS", kernels(2, 3).sql(mpi, tid(2, 1), tid(3, 1)), "x.sqlite", nil, 4, "mpi_ranks"},
		{"the file's name", kernels(2), "report_np8_rank6.sqlite", nil, 6, "file name"},
		{"a model's name before it", kernels(2), "deepseek-r1.ep4.rank0.sqlite", nil, 0, "file name"},
		{"a model's name alone", kernels(2), "deepseek-r1.sqlite", nil, 2, "device ordinal"},
		{"the device", kernels(2), "forward4.sqlite", nil, 2, "device ordinal"},
		{"a device below 0", kernels(2).sql("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET deviceId = -7"), "x.sqlite", nil, 0,
			"process order"},
		{"several processes on one device", kernels(2, 3).sql("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET deviceId = 0"),
			"x.sqlite", nil, 0, "process order"},
	} {
		t.Run(c.what, func(t *testing.T) {
			trace := mustRead(t, Options{Rank: c.flag}, c.fixture.write(t, c.file))
			if r := trace.Ranks[0]; r.Rank != c.rank || r.Evidence != c.evidence {
				t.Errorf("want rank %d by %s, have %+v", c.rank, c.evidence, trace.Ranks)
			}
		})
	}
	a, b := kernels(0).write(t, "a.sqlite"), kernels(0).work(0, 2, 30, 7, "k").write(t, "b.sqlite")
	if _, err := Read(t.Context(), []string{a, b}, Options{}); !errors.Is(err, errRank) {
		t.Errorf("two files of rank 0: want ErrRank, have %v", err)
	}
	if _, err := Read(t.Context(), []string{kernels(0, 1).write(t, "c.sqlite")},
		Options{Rank: map[string]int{"": 1}}); !errors.Is(err, errRank) {
		t.Errorf("one rank for two processes: want ErrRank, have %v", err)
	}
}

// An expert GEMM of 0 ns ran, but its time is lost: what its rank took is not known.
func TestGEMMWithoutDurationIsLost(t *testing.T) {
	for _, last := range []int64{0, 10} {
		f := newFixture()
		for step := range int64(2) {
			f.push(0, 1000*step, 1000*step+900, "[Executor] _forward_step "+string(rune('0'+step))+":")
			f.work(0, step+1, 1000*step+20, []int64{10, last}[step], "fused_moe_kernel")
		}
		trace := mustRead(t, Options{}, f.write(t, "r.rank0.sqlite"))
		if lost := trace.Doubt().Code == "lost_kernels"; lost != (last == 0) {
			t.Errorf("a GEMM of %d ns: doubt %q", last, trace.Doubt().Code)
		}
	}
}
