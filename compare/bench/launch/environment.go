package launch

import (
	"regexp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/router/shown"
)

// recordedPrefixes begin the names of variables that can change what a launch
// measures. No others are recorded.
var recordedPrefixes = []string{
	"CUDA_", "CUBLAS", "CUDNN", "NVIDIA_", "NCCL_", "NVSHMEM_", "UCX_", "DEEP_EP", "DEEPEP_", "DG_",
	"ENABLE_", "TLLM_", "TRTLLM_", "TRT_", "VLLM_", "SGLANG_", "SGL_", "FLASHINFER_", "TRITON_", "TORCH", "PYTORCH_",
	"OMP_", "MKL_", "OPENBLAS_", "GOMAXPROCS", "GODEBUG", "GOGC", "GOMEMLIMIT", "MOEBALANCE_", "LD_LIBRARY_PATH",
	"LD_PRELOAD", "PYTHONPATH",
	"OMPI_MCA_", "SLURM_JOB_PARTITION", "SLURM_NNODES", "SLURM_NTASKS", "HF_HOME", "HF_HUB_OFFLINE",
}

// VariableName is what an environment variable can be called.
var VariableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// RecordEnvironment keeps the variables of env that can change what a launch measures,
// and those that the spec sets itself, without secrets.
func RecordEnvironment(env []string, own map[string]string) map[string]string {
	kept := make(map[string]string)
	for _, kv := range env {
		name, value, _ := strings.Cut(shown.Mask([]string{kv})[0], "=")
		begins := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if _, ours := own[name]; ours || slices.ContainsFunc(recordedPrefixes, begins) {
			kept[name] = value
		}
	}
	return kept
}
