package bench

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// recordedPrefixes begin the names of variables that can change what a launch
// measures. No others are recorded.
var recordedPrefixes = []string{
	"CUDA_", "CUBLAS", "CUDNN", "NVIDIA_", "NCCL_", "NVSHMEM_", "UCX_", "DEEP_EP", "DEEPEP_", "DG_",
	"ENABLE_", "TLLM_", "TRTLLM_", "TRT_", "VLLM_", "SGLANG_", "SGL_", "FLASHINFER_", "TRITON_", "TORCH", "PYTORCH_",
	"OMP_", "MKL_", "OPENBLAS_", "GOMAXPROCS", "GODEBUG", "GOGC", "GOMEMLIMIT", "MOEBALANCE_", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH",
	"OMPI_MCA_", "SLURM_JOB_PARTITION", "SLURM_NNODES", "SLURM_NTASKS", "HF_HOME", "HF_HUB_OFFLINE",
}

// secretParts are parts of names whose values are never recorded.
var secretParts = []string{"TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH"}

// redacted stands for a secret value in a record.
const redacted = "(redacted)"

// recordEnvironment keeps the variables of env that can change what a launch measures,
// and those of the treatment.
func recordEnvironment(env []string, t Treatment) map[string]string {
	kept := make(map[string]string)
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		_, ours := t.Perfect[name]
		if !ours && !slices.ContainsFunc(recordedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			continue
		}
		if slices.ContainsFunc(secretParts, func(s string) bool { return strings.Contains(strings.ToUpper(name), s) }) {
			value = redacted
		}
		kept[name] = value
	}
	return kept
}

// fileHasher hashes files, and not again while size and time of change stay.
type fileHasher map[string]hashedFile

type hashedFile struct {
	file    File
	changed int64 // modification time, ns
}

func (h fileHasher) hash(path string) (File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return File{}, err
	}
	if !info.Mode().IsRegular() {
		return File{}, fmt.Errorf("%s is not a regular file", path)
	}
	if known, ok := h[path]; ok && known.file.Bytes == info.Size() && known.changed == info.ModTime().UnixNano() {
		return known.file, nil
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
	file := File{Path: path, SHA256: hex.EncodeToString(sum.Sum(nil)), Bytes: n}
	h[path] = hashedFile{file, info.ModTime().UnixNano()}
	return file, nil
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
