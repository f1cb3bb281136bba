package bench

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
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

// hashed begins the record of a value that is not kept: a hash of it, which tells it
// from another.
const hashed = "sha256:"

// passing are variables that shells and this program change from launch to launch.
var passing = []string{"_", "SHLVL", "PWD", "OLDPWD", "SPT_NOENV", "MOEBALANCE_LAUNCH"}

// ownVariables are those of a process that differ from what it was given: by name, the
// value where it may be recorded, else a hash with the campaign's ID, so that no record
// holds a secret; "removed" for those that are gone. The folder of a launch counts as
// the same in all. The result is nil where the process is unknown.
func ownVariables(process, given []string, id, folder string) map[string]string {
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
		if was && before == value || slices.Contains(passing, name) || !variableName.MatchString(name) {
			continue
		}
		value = strings.ReplaceAll(value, folder, "{out}")
		if !isRecorded(name) || shown.Mask([]string{entry})[0] != entry {
			value = fmt.Sprintf("%s%.4x", hashed, sha256.Sum256([]byte(id+name+"="+value)))
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

// undone warns of a command that changes the treatment's variables itself; empty where
// it does not.
func (t Treatment) undone(own map[string]string) string {
	for _, name := range t.Names() {
		if value, changed := own[name]; changed {
			return fmt.Sprintf("the command itself changes %s (%s): both arms may run alike", name,
				changedTo(value, true))
		}
	}
	return ""
}

func isRecorded(name string) bool {
	return slices.ContainsFunc(recordedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// recordEnvironment keeps the variables of env that can change what a launch measures,
// and those that the spec sets itself, without secrets.
func recordEnvironment(env []string, own map[string]string) map[string]string {
	kept := make(map[string]string)
	for _, kv := range env {
		name, value, _ := strings.Cut(shown.Mask([]string{kv})[0], "=")
		if _, ours := own[name]; ours || isRecorded(name) {
			kept[name] = value
		}
	}
	return kept
}

// fileHasher hashes files, and not again while size and time of change stay.
type fileHasher map[fileState]File

type fileState struct {
	path           string
	bytes, changed int64 // modification time, ns
}

func (h fileHasher) hash(path string) (File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return File{}, err
	}
	if !info.Mode().IsRegular() {
		return File{}, fmt.Errorf("%s is not a regular file", path)
	}
	state := fileState{path, info.Size(), info.ModTime().UnixNano()}
	if known, ok := h[state]; ok {
		return known, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err != nil {
		return File{}, fmt.Errorf("hashing %s: %w", path, err)
	}
	h[state] = File{Path: path, SHA256: hex.EncodeToString(sum.Sum(nil)), Bytes: n}
	return h[state], nil
}

// files hashes all of paths, of which relative ones start from the folder.
func (h fileHasher) files(folder string, paths []string) ([]File, error) {
	var files []File
	for _, path := range paths {
		f, err := h.hash(inFolder(folder, path))
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}
