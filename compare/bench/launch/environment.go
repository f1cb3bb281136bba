package launch

import (
	"crypto/sha256"
	"fmt"
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

// Hashed begins the record of a value that is not kept: a hash of it, which tells it
// from another.
const Hashed = "sha256:"

// VariableName is what an environment variable can be called.
var VariableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// passing are variables that shells and this program change from launch to launch.
var passing = []string{"_", "SHLVL", "PWD", "OLDPWD", "SPT_NOENV", "MOEBALANCE_LAUNCH"}

// OwnVariables are those of a process that differ from what it was given: by name, the
// value where it may be recorded, else a hash with the campaign's ID, so that no record
// holds a secret; "removed" for those that are gone. The folder of a launch counts as
// the same in all. The result is nil where the process is unknown.
func OwnVariables(process, given []string, id, folder string) map[string]string {
	if process == nil {
		return nil
	}
	had := make(map[string]string)
	for _, entry := range given {
		name, value, _ := strings.Cut(entry, "=")
		had[name] = value
	}
	own := make(map[string]string)
	for _, entry := range process {
		name, value, _ := strings.Cut(entry, "=")
		before, was := had[name]
		delete(had, name)
		if was && before == value || slices.Contains(passing, name) || !VariableName.MatchString(name) {
			continue
		}
		value = strings.ReplaceAll(value, folder, "{out}")
		if !isRecorded(name) || shown.Mask([]string{entry})[0] != entry {
			value = fmt.Sprintf("%s%.4x", Hashed, sha256.Sum256([]byte(id+name+"="+value)))
		}
		own[name] = value
	}
	for name := range had {
		if !slices.Contains(passing, name) {
			own[name] = "removed"
		}
	}
	return own
}

func isRecorded(name string) bool {
	return slices.ContainsFunc(recordedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// RecordEnvironment keeps the variables of env that can change what a launch measures,
// and those that the spec sets itself, without secrets.
func RecordEnvironment(env []string, own map[string]string) map[string]string {
	kept := make(map[string]string)
	for _, kv := range env {
		name, value, _ := strings.Cut(shown.Mask([]string{kv})[0], "=")
		if _, ours := own[name]; ours || isRecorded(name) {
			kept[name] = value
		}
	}
	return kept
}
