package launch

import (
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
)

func TestPassOn(t *testing.T) {
	on, off, unset := map[string]string{"A": "1"}, map[string]string{"A": "0", "B": "x y"}, map[string]string{"A": ""}
	for line, c := range map[string]struct {
		pass  map[string]string
		want  string
		warns bool
	}{
		"trt-tool -x":                                 {on, "trt-tool -x", false},
		"mpirun -n 4 prog -n 2":                       {on, "mpirun -n 4 env A=1 prog -n 2", false},
		"mpiexec -ppn 2 prog":                         {off, "mpiexec -ppn 2 env A=0 'B=x y' prog", false},
		"mpirun prog":                                 {unset, "mpirun prog", false}, // without a value it is left out
		"/usr/bin/srun -N 1 prog":                     {on, "/usr/bin/srun -N 1 env A=1 prog", false},
		"srun --export NONE prog":                     {on, "srun --export NONE env A=1 prog", false},
		"srun --label prog --export=x":                {on, "srun --label env A=1 prog --export=x", false},
		"docker run image prog":                       {on, "docker run image prog", true},
		"docker run image {nsys} prog":                {on, "docker run image env A=1 prog", false},
		"numactl -N 0 {nsys} prog":                    {on, "numactl -N 0 env A=1 prog", false},
		"ssh host prog":                               {on, "ssh host prog", true},
		"trtllm-bench throughput":                     {on, "trtllm-bench throughput", true},
		"mpirun -n 2 {nsys} prog":                     {nil, "mpirun -n 2 prog", false},
		"mpirun -n 2 env C=2 prog":                    {on, "mpirun -n 2 env A=1 env C=2 prog", false},
		"mpirun --mca btl self -x A --tag-output p q": {on, "mpirun --mca btl self -x A --tag-output env A=1 p q", false},
		"mpirun --map-by=node -H a,b p":               {on, "mpirun --map-by=node -H a,b env A=1 p", false},
		"mpiexec -genv A 1 -ppn 2 p":                  {on, "mpiexec -genv A 1 -ppn 2 env A=1 p", false},
		"srun --container-image x.sqsh -- p --a":      {on, "srun --container-image x.sqsh -- env A=1 p --a", false},
		"orterun -map-by slot --display map p q":      {on, "orterun -map-by slot --display map env A=1 p q", false},
		"srun --mpi pmix -l -C h200 p q":              {on, "srun --mpi pmix -l -C h200 env A=1 p q", false},
		"mpirun -n 4":                                 {on, "mpirun -n 4 env A=1", false},
	} {
		words := require.Value(Words(line))
		if got, warning := PassOn(words, c.pass); Quote(got) != c.want || (warning != "") != c.warns {
			t.Errorf("PassOn(%q, %v) = %q, warning %q; want %q", line, c.pass, Quote(got), warning, c.want)
		}
	}
}
