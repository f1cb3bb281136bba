package launch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
)

// What nsys is told, and the variables beside it: of the TensorRT-LLM pages, of other options, and of its older
// benchmarks, which take lists of iterations by variables of their own.
func TestProfileSwitches(t *testing.T) {
	const always = "nsys profile -f true -t cuda,nvtx --cuda-graph-trace node " +
		"--trace-fork-before-exec=true --export=sqlite"
	for _, c := range []struct {
		p         Profile
		words     string // of the command
		nsys      string
		variables map[string]string
	}{
		{Profile{Rank: -1}, "prog", always, map[string]string{"TLLM_NVTX_DEBUG": "1", "TLLM_PROFILE_RECORD_GC": "1",
			"TLLM_LLMAPI_ENABLE_NVTX": "1"}},
		{Profile{Rank: -1, Windows: "100-150"}, "trtllm-bench throughput",
			always + " -c cudaProfilerApi --capture-range-end=stop", map[string]string{"TLLM_PROFILE_START_STOP": "100-150"}},
		{Profile{Rank: -1, Windows: "0,5-9"}, "prog",
			always + " -c cudaProfilerApi --capture-range-end=repeat:2",
			map[string]string{"TLLM_PROFILE_START_STOP": "0,5-9"}},
		{Profile{Rank: -1, Windows: "0,63,127"}, "mpirun -n 2 /opt/gptManagerBenchmark --engine_dir e",
			always + " -c cudaProfilerApi '--capture-range-end=repeat[]'",
			map[string]string{"TLLM_GPTM_PROFILE_START_STOP": "0,63,127"}},
		{Profile{Rank: -1, Windows: "0,63,127"}, "gptSessionBenchmark",
			always + " -c cudaProfilerApi '--capture-range-end=repeat[]'",
			map[string]string{"TLLM_GPTS_PROFILE_START_STOP": "0,63,127"}},
		{Profile{Rank: -1, Windows: "TLLM_GPTM_PROFILE_START_STOP=0,63"}, "./run.sh",
			always + " -c cudaProfilerApi '--capture-range-end=repeat[]'",
			map[string]string{"TLLM_GPTM_PROFILE_START_STOP": "0,63"}},
		{Profile{Rank: 0, Arguments: []string{"--stats=true"}}, "prog", always + " --stats=true",
			map[string]string{"NSYS_MPI_STORE_TEAMS_PER_RANK": "1"}},
	} {
		c.p.Variable, c.p.Windows = ReadWindows(c.p.Windows, strings.Fields(c.words))
		if got := Quote(c.p.nsys()); got != c.nsys || c.p.Check() != nil {
			t.Errorf("%+v: %v\n%s\nwant\n%s", c.p, c.p.Check(), got, c.nsys)
		}
		for name, want := range c.variables {
			if got := c.p.Variables(); got[name] != want {
				t.Errorf("%+v: %v, want %s=%s", c.p, got, name, want)
			}
		}
	}
}

// The wrapper, run as each launcher would: with a program in nsys's place that
// writes down what it is told, and then runs the rest like nsys does.
func TestWrapperFindsItsRank(t *testing.T) {
	nsys := filepath.Join(t.TempDir(), "fake nsys")
	script := "#!/bin/sh\necho \"$@\" | grep -o -e '[^/]*rank.*'\nwhile [ \"$1\" != -o ]; do shift; done\n" +
		"shift 2\nexec \"$@\"\n"
	require.NoError(t, os.WriteFile(nsys, []byte(script), 0o755))
	for _, c := range []struct {
		variables string
		only      int
		want      string
	}{
		{"OMPI_COMM_WORLD_RANK=8 OMPI_COMM_WORLD_LOCAL_RANK=0", -1, "report.rank8 echo hello it's hello it's"},
		{"OMPI_COMM_WORLD_RANK=9 OMPI_COMM_WORLD_LOCAL_RANK=1", -1, "report.rank9 echo hello it's hello it's"},
		{"PMI_RANK=3 MPI_LOCALRANKID=3", -1, "report.rank3 echo hello it's hello it's"},
		{"SLURM_PROCID=4 SLURM_LOCALID=0", -1, "report.rank4 echo hello it's hello it's"},
		{"SLURM_PROCID=5 SLURM_LOCALID=1", 5, "report.rank5 echo hello it's hello it's"},
		{"SLURM_PROCID=1", 2, "hello it's"},
		{"NONE=1", -1, "report.rank0 echo hello it's hello it's"},
	} {
		words := Profile{Nsys: nsys, Rank: c.only, Folder: "d"}.wrap([]string{"echo", "hello", "it's"})
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, strings.Fields(c.variables)...)
		out, err := cmd.CombinedOutput()
		if got := strings.Join(strings.Fields(string(out)), " "); err != nil || got != c.want {
			t.Errorf("%s: printed %q, %v; want %q", c.variables, got, err, c.want)
		}
	}
}
