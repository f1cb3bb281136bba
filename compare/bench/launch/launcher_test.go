package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPassOn(t *testing.T) {
	on, off := []Variable{{"ENABLE_PERFECT_ROUTER", "1"}}, []Variable{{"ENABLE_PERFECT_ROUTER", "0"}}
	unset := []Variable{{"VLLM_MOE_ROUTING_SIMULATION_STRATEGY", ""}}
	for _, c := range []struct {
		line    string
		pass    []Variable
		version string
		want    string
		warns   bool
	}{
		{"trt-tool -x", on, "", "trt-tool -x", false},
		{"mpirun -n 4 prog", on, "mpirun (Open MPI) 4.1.6", "mpirun -x ENABLE_PERFECT_ROUTER=1 -n 4 prog", false},
		{"mpirun -n 4 prog", off, "", "mpirun -x ENABLE_PERFECT_ROUTER=0 -n 4 prog", false},
		{"mpiexec -n 4 prog", on, "HYDRA build details:", "mpiexec -genv ENABLE_PERFECT_ROUTER 1 -n 4 prog", false},
		{"mpiexec -ppn 2 prog", on, "", "mpiexec -genv ENABLE_PERFECT_ROUTER 1 -ppn 2 prog", false},
		{"mpiexec -n 2 prog", on, "", "mpiexec -x ENABLE_PERFECT_ROUTER=1 -n 2 prog", true},
		// A variable without a value is left out.
		{"mpirun prog", unset, "", "mpirun prog", false},
		{"/usr/bin/srun -N 1 prog", on, "", "/usr/bin/srun --export=ALL,ENABLE_PERFECT_ROUTER=1 -N 1 prog", false},
		{"srun --export=NONE prog", on, "", "srun --export=ENABLE_PERFECT_ROUTER=1 prog", false},
		{"srun --export ALL,A=1 prog", off, "", "srun --export ALL,A=1,ENABLE_PERFECT_ROUTER=0 prog", false},
		// The program's own --export is left alone.
		{"srun prog --export=x", on, "", "srun --export=ALL,ENABLE_PERFECT_ROUTER=1 prog --export=x", false},
		{"srun -N 2 --label prog --export=x", on, "",
			"srun --export=ALL,ENABLE_PERFECT_ROUTER=1 -N 2 --label prog --export=x", false},
		{"srun --mpi pmix --export A=1 prog", on, "", "srun --mpi pmix --export A=1,ENABLE_PERFECT_ROUTER=1 prog",
			false},
		{"numactl -N 0 mpirun prog", on, "", "numactl -N 0 mpirun prog", true},
		{"bash -c '/opt/bin/srun prog'", on, "", "bash -c '/opt/bin/srun prog'", true},
		{"docker run --rm image prog", on, "", "docker run -e ENABLE_PERFECT_ROUTER=1 --rm image prog", false},
		{"docker compose up", on, "", "docker compose up", true},
		{"ssh host prog", on, "", "ssh host prog", true},
		{"trtllm-bench throughput", on, "", "trtllm-bench throughput", true},
	} {
		words, err := Words(c.line)
		if err != nil {
			t.Fatal(err)
		}
		got, warning := PassOn(words, c.pass, c.version)
		if Quote(got) != c.want || (warning != "") != c.warns {
			t.Errorf("PassOn(%q, %v) = %q, warning %q; want %q", c.line, c.pass, Quote(got), warning, c.want)
		}
		if Quote(words) != c.line && !strings.Contains(c.line, "'") {
			t.Errorf("PassOn changed its argument %q to %q", c.line, Quote(words))
		}
	}
}

// Raw output may hold secrets: only its owner reads it, also where a file of that name was there.
func TestLogsAreTheirOwners(t *testing.T) {
	path := filepath.Join(t.TempDir(), Stdout)
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := createLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || info.Size() != 0 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
