package launch

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestProfileSwitches(t *testing.T) {
	p := Profile{Windows: "100-150", GraphTrace: "node", Trace: []string{"python-gil"}, GPUMetrics: true, Rank: -1}
	if got, want := Quote(
		p.nsys()), "nsys profile -f true -t cuda,nvtx,python-gil --cuda-graph-trace node --trace-fork-before-exec=true "+
		"--export=sqlite -c cudaProfilerApi --capture-range-end=stop"; got != want {
		t.Errorf("switches\n%s\nwant\n%s", got, want)
	}
	set := func(p Profile) map[string]string {
		values := make(map[string]string)
		for _, v := range p.Variables() {
			values[v.Name] = v.Value
		}
		return values
	}
	v := set(p)
	if v["TLLM_PROFILE_START_STOP"] != "100-150" || v["TLLM_NVTX_DEBUG"] != "1" || v["TLLM_PROFILE_RECORD_GC"] != "1" ||
		v["TLLM_LLMAPI_ENABLE_NVTX"] != "1" {
		t.Errorf("variables %v", v)
	}
	p = Profile{Windows: "0,5-9", GraphTrace: "graph", TorchTrace: "t.json"}
	if got := Quote(p.nsys()); !strings.Contains(got, "--capture-range-end=repeat:2") {
		t.Errorf("switches %s", got)
	}
	if v := set(p); v["TLLM_PROFILE_START_STOP"] != "0,5-9" || v["TLLM_TORCH_PROFILE_TRACE"] != "t.json" {
		t.Errorf("variables %v", v)
	}
	if got := Quote(Profile{GraphTrace: "node"}.nsys()); strings.Contains(got, "cudaProfilerApi") {
		t.Errorf("without iterations the whole run is recorded, but: %s", got)
	}
}

func TestProfileCheck(t *testing.T) {
	for _, p := range []Profile{
		{}, {GraphTrace: "full"}, {GraphTrace: "node", Windows: "9-3"}, {GraphTrace: "node", Windows: "a"},
		{GraphTrace: "node", Windows: "1-2,"},
	} {
		if p.Check() == nil {
			t.Errorf("%+v passed", p)
		}
	}
	for _, w := range []string{"", "5", "1-1", "1-4,7-8,12"} {
		if err := (Profile{GraphTrace: "node", Windows: w}).Check(); err != nil {
			t.Errorf("%q: %v", w, err)
		}
	}
}

func TestProgramAt(t *testing.T) {
	for line, want := range map[string]string{
		"prog -n 4":             "prog",
		"mpirun -n 4 prog -n 2": "prog",
		"mpirun --mca btl self -x A --tag-output p q": "p",
		"mpirun --map-by=node -H a,b p":               "p",
		"mpiexec -genv A 1 -ppn 2 p":                  "p",
		"srun -N 2 --ntasks-per-node=4 --mpi=pmix p":  "p",
		"srun --container-image x.sqsh -- p --a":      "p",
		"/opt/bin/mpirun -np 2 p":                     "p",
		"orterun -map-by slot --display map p q":      "p",
		"srun --mpi pmix -l -C h200 p q":              "p",
		"mpirun -n 4":                                 "",
	} {
		words, _ := Words(line)
		at := programAt(words)
		got := ""
		if at < len(words) {
			got = words[at]
		}
		if got != want {
			t.Errorf("%q: the program is %q, want %q", line, got, want)
		}
	}
}

func TestProfileScript(t *testing.T) {
	p := Profile{GraphTrace: "node", Rank: 2, Set: map[string]string{"ENABLE_PERFECT_ROUTER": "1"}}
	want := `#!/bin/sh
# The command under Nsight Systems, one report per rank.
export ENABLE_PERFECT_ROUTER=1
export NSYS_MPI_STORE_TEAMS_PER_RANK=1
export TLLM_LLMAPI_ENABLE_NVTX=1
export TLLM_NVTX_DEBUG=1
export TLLM_PROFILE_RECORD_GC=1
mkdir -p 'my reports'
exec mpirun -x ENABLE_PERFECT_ROUTER=1 -x NSYS_MPI_STORE_TEAMS_PER_RANK=1 -x TLLM_LLMAPI_ENABLE_NVTX=1 -x TLLM_NVTX_DEBUG=1 -x TLLM_PROFILE_RECORD_GC=1 -n 4 sh -c 'rank="${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${SLURM_PROCID:-${PMIX_RANK:-0}}}}"; [ "$rank" = 2 ] || exec "$@"; exec nsys profile -f true -t cuda,nvtx --cuda-graph-trace node --trace-fork-before-exec=true --export=sqlite -o '\''my reports/report.rank'\''"$rank" "$@"' moebalance-profile prog 'a b'
`
	if got := p.Script([]string{"mpirun", "-n", "4", "prog", "a b"}, "my reports", ""); got != want {
		t.Errorf("script\n%s\nwant\n%s", got, want)
	}
	if got := p.Wrap([]string{"launcher", "-x", ProfilerHere, "prog"}, "d", ""); !reflect.DeepEqual(got[:3],
		[]string{"launcher", "-x", "sh"}) || got[len(got)-1] != "prog" {
		t.Errorf("with the mark: %q", got)
	}
}

// The wrapper, run as each launcher would: with a program in nsys's place that
// writes down its report's name, and then runs the rest like nsys does.
func TestWrapperFindsItsRank(t *testing.T) {
	dir := t.TempDir()
	nsys := filepath.Join(dir, "fake nsys")
	script := "#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\necho profiled \"$2\"\nshift 2\nexec \"$@\"\n"
	if err := os.WriteFile(nsys, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		variable string
		only     int
		want     string
	}{
		{"OMPI_COMM_WORLD_RANK=3", -1, "profiled " + dir + "/report.rank3\nhello it's me"},
		{"PMI_RANK=1", -1, "profiled " + dir + "/report.rank1\nhello it's me"},
		{"SLURM_PROCID=2", 2, "profiled " + dir + "/report.rank2\nhello it's me"},
		{"SLURM_PROCID=1", 2, "hello it's me"},
		{"NONE=1", -1, "profiled " + dir + "/report.rank0\nhello it's me"},
	} {
		p := Profile{Nsys: nsys, GraphTrace: "node", Rank: c.only}
		words := p.Wrap([]string{"echo", "hello", "it's me"}, dir, "")
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), c.variable}
		out, err := cmd.CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != c.want {
			t.Errorf("%s: printed %q, %v; want %q", c.variable, out, err, c.want)
		}
	}
}

// One rank of each machine samples its GPUs, or the only rank that is profiled.
func TestGPUMetricsOncePerMachine(t *testing.T) {
	nsys := filepath.Join(t.TempDir(), "nsys")
	if err := os.WriteFile(nsys, []byte("#!/bin/sh\necho \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		variables []string
		only      int
		want      bool
	}{
		{[]string{"OMPI_COMM_WORLD_RANK=8", "OMPI_COMM_WORLD_LOCAL_RANK=0"}, -1, true},
		{[]string{"OMPI_COMM_WORLD_RANK=9", "OMPI_COMM_WORLD_LOCAL_RANK=1"}, -1, false},
		{[]string{"PMI_RANK=3", "MPI_LOCALRANKID=3"}, -1, false},
		{[]string{"SLURM_PROCID=4", "SLURM_LOCALID=0"}, -1, true},
		{[]string{"SLURM_PROCID=5", "SLURM_LOCALID=1"}, 5, true},
		{nil, -1, true},
	} {
		words := Profile{Nsys: nsys, GraphTrace: "node", Rank: c.only, GPUMetrics: true}.Wrap([]string{"echo"}, "d", "")
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, c.variables...)
		out, err := cmd.CombinedOutput()
		if got := strings.Contains(string(out), "--gpu-metrics-device=all -o d/report.rank"); err != nil ||
			got != c.want {
			t.Errorf("%v, rank %d only: sampled %t, want %t: %s %v", c.variables, c.only, got, c.want, out, err)
		}
	}
}

func ExampleProfile_Wrap() {
	p := Profile{GraphTrace: "graph", Rank: -1}
	fmt.Println(p.Wrap([]string{"vllm", "bench", "throughput"}, "reports", "")[:2])
	// Output: [sh -c]
}

// The options of nsys that the TensorRT-LLM and nsys documents name, and any other.
func TestProfileOptions(t *testing.T) {
	p := Profile{GraphTrace: "node", Rank: -1, GPUMetrics: true, Trace: []string{"osrt", "cudnn", "cublas", "cuda"},
		Arguments: []string{"--gpu-metrics-frequency=20000", "--cudabacktrace=kernel:10000", "--stats=true"}}
	if got, want := Quote(
		p.nsys()), "nsys profile -f true -t cuda,nvtx,osrt,cudnn,cublas --cuda-graph-trace node --trace-fork-before-exec=true --export=sqlite "+
		"--gpu-metrics-frequency=20000 --cudabacktrace=kernel:10000 --stats=true"; got != want {
		t.Errorf("switches\n%s\nwant\n%s", got, want)
	}
	teams := Variable{"NSYS_MPI_STORE_TEAMS_PER_RANK", "1"}
	for _, c := range []struct {
		p    Profile
		want bool
	}{{Profile{Rank: -1}, false}, {Profile{Rank: 0}, true}, {Profile{Rank: -1, Trace: []string{"mpi"}}, true}} {
		if got := slices.Contains(c.p.Variables(), teams); got != c.want {
			t.Errorf("%+v: %v is set: %v", c.p, teams, got)
		}
	}
}

// The older benchmarks of TensorRT-LLM take lists of iterations by variables of their own.
func TestOlderBenchmarksTakeLists(t *testing.T) {
	for program, want := range map[string]string{"/opt/benchmarks/gptManagerBenchmark": "TLLM_GPTM_PROFILE_START_STOP",
		"gptSessionBenchmark": "TLLM_GPTS_PROFILE_START_STOP"} {
		p := Profile{GraphTrace: "node", Windows: "0,63,127", Rank: -1}
		words := []string{"mpirun", "-n", "2", program, "--engine_dir", "e"}
		if p.Program = ProgramOf(words); p.Check() != nil || !slices.Contains(p.Variables(), Variable{want, "0,63,127"}) {
			t.Errorf("%s: %v, %v", program, p.Check(), p.Variables())
		}
		if got := Quote(p.nsys()); !strings.Contains(got, "-c cudaProfilerApi '--capture-range-end=repeat[]'") {
			t.Errorf("%s: %s", program, got)
		}
	}
	if ProgramOf([]string{"trtllm-bench", "throughput"}) != "" {
		t.Error("trtllm-bench has no list of its own")
	}
}
