package nsys

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

// A kernel that a process ran on another device by mistake makes no rank of its
// own, which would also move the numbers of the others.
func TestStrayDeviceIsNoRank(t *testing.T) {
	f := worked().call(6, 2, 20).kernel(6, 2, 30, 31,
		"fill").sql("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET deviceId = 0 WHERE correlationId = 2 OR globalPid = %d",
		pid(5)).
		sql("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET deviceId = 1 WHERE correlationId = 1 AND globalPid = %d", pid(6))
	trace := mustRead(t, Options{}, f.write(t, "stray.sqlite"))
	if len(trace.Ranks) != 2 || trace.Ranks[0].PID != 5 || trace.Ranks[1].Evidence != "device ordinal" ||
		trace.Ranks[1].DeviceID != 1 {
		t.Errorf("have %+v", trace.Ranks)
	}
	equal(t, "the stray kernel is its process's", phaseTime(trace, 1, 0, PhaseExperts), 6+1)
	if !hasWarning(trace.Exports[0].Warnings, "other_device") {
		t.Errorf("have %v", trace.Exports[0].Warnings)
	}
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

// A rank without any kernel is no rank of the result, and that is said.
func TestProcessWithoutKernels(t *testing.T) {
	trace := mustRead(t, Options{}, worked().push(9, 0, 50, "layer 0 experts").write(t, "silent.sqlite"))
	equal(t, "ranks", len(trace.Ranks), 2)
	if w := trace.Exports[0].Warnings; len(w) != 1 || w[0].Code != "no_kernels" {
		t.Errorf("have %v", w)
	}
}

// Kernels without a process stand alone where there are several to own them, and
// that is said.
func TestKernelsOfNobody(t *testing.T) {
	f := worked().kernel(5, 9, 60, 63,
		"k").sql("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET globalPid = NULL WHERE correlationId = 9")
	trace := mustRead(t, Options{}, f.write(t, "nobody.sqlite"))
	if !hasWarning(trace.Exports[0].Warnings, "no_process") || len(trace.Ranks) != 3 || trace.Coverage.GPUNS != 5+6+3 {
		t.Errorf("have %+v, %v", trace.Ranks, trace.Exports[0].Warnings)
	}
}

// Processes × devices × streams: a stream id means another stream in every
// process and on every device.
func TestStreamsOfRanks(t *testing.T) {
	f := newFixture().work(5, 1, 10, 9, "k").work(5, 2, 40, 9, "k").work(5, 3, 60, 9, "k").work(6, 1, 10, 9, "k").
		sql("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET streamId = 13 WHERE correlationId = 2").
		sql("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET deviceId = 0 WHERE correlationId = 3")
	trace := mustRead(t, Options{}, f.write(t, "streams.sqlite"))
	if len(trace.Ranks) != 2 || trace.Ranks[0].Streams != 3 || trace.Ranks[1].Streams != 1 {
		t.Errorf("want 2 streams on device 5 and 1 on device 0, and 1 of the other process: have %+v", trace.Ranks)
	}
}
