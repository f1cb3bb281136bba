package trace

import "testing"

const deviceMap = "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL); INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES "

// worked is two processes, 5 and 6, that take 5 and 6 ns in layer 0.
func worked() *fixture {
	f := newFixture()
	for _, p := range []int64{5, 6} {
		f.push(p, 0, 50, "layer 0 experts").work(p, 1, 10, p, "gemm")
	}
	return f
}

// One process on two devices is two ranks, unless it says that it is one.
func TestDevicesOfOneProcess(t *testing.T) {
	for _, c := range []struct {
		what     string
		set      func(*fixture)
		flag     map[string]int
		ranks    int
		first    int
		evidence string
	}{
		{"nothing said", func(*fixture) {}, nil, 2, 0, "device ordinal"},
		{"the only rank of its run",
			func(f *fixture) { f.environment(`SLURM_PROCID="0"`).environment(`SLURM_NTASKS="1"`) }, nil, 2, 0, "device ordinal"},
		{"a rank of eight", func(f *fixture) { f.environment(`RANK="0"`).environment(`WORLD_SIZE="8"`) }, nil, 1, 0,
			"environment"},
		{"rank 3", func(f *fixture) { f.environment(`RANK="3"`) }, nil, 1, 3, "environment"},
		{"a rank of MPI", func(f *fixture) {
			f.sql("CREATE TABLE MPI_RANKS (globalTid INTEGER, rank INTEGER); INSERT INTO MPI_RANKS VALUES (%d,4)",
				tid(5, 1))
		}, nil, 1, 4, "mpi_ranks"},
		{"a rank given by hand", func(*fixture) {}, map[string]int{"": 7}, 1, 7, "flag"},
	} {
		f := newFixture().work(5, 1, 10, 9, "k").work(5, 2, 40, 3,
			"k").sql("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET deviceId = correlationId - 1")
		c.set(f)
		trace := mustRead(t, Options{Rank: c.flag}, f.write(t, "one.sqlite"))
		if len(trace.Ranks) != c.ranks || trace.Ranks[0].Rank != c.first || trace.Ranks[0].Evidence != c.evidence {
			t.Errorf("%s: have %+v", c.what, trace.Ranks)
		}
		equal(t, c.what+": all time is counted", trace.Coverage.GPUNS, 9+3)
	}
}

// Under CUDA_VISIBLE_DEVICES every process calls its own device 0.
func TestDevicesByTheMachinesNumbers(t *testing.T) {
	const zero = "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET deviceId = 0"
	for _, c := range []struct {
		what     string
		f        *fixture
		first    int64 // process of rank 0
		evidence string
	}{
		{"mapped", worked().sql(zero).sql(deviceMap + "(1,0,5),(0,1,5),(0,0,6),(1,1,6)"), 6, "device ordinal"},
		{"not mapped", worked().sql(zero), 5, "process order"},
		{"one GPU for both", worked().sql(zero).sql(deviceMap + "(0,0,5),(0,0,6)"), 5, "process order"},
		{"mapped in part", worked().sql(zero).sql(deviceMap + "(0,0,6),(NULL,0,5)"), 5, "process order"},
	} {
		trace := mustRead(t, Options{}, c.f.write(t, "visible.sqlite"))
		if len(trace.Ranks) != 2 || trace.Ranks[0].Rank != 0 || trace.Ranks[0].PID != c.first ||
			trace.Ranks[0].Evidence != c.evidence {
			t.Errorf("%s: have %+v", c.what, trace.Ranks)
		}
	}
}
