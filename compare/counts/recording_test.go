package counts

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/moebalance/moebalance/logits/safetensors"
)

// A recording is not held in memory, neither by its record nor while it is judged: here 4 ranks with 4,096 tensors
// of 2 KiB each, of which the first expert has load.
func TestMemoryOfRecording(t *testing.T) {
	if testing.Short() {
		t.Skip("writes and reads 32 MiB")
	}
	const ranks, steps, experts = 4, 4096, 256
	dir := t.TempDir()
	var tensors []safetensors.Tensor
	for i := range steps {
		tensors = append(tensors, safetensors.Tensor{Name: fmt.Sprintf("%d_%d", 100000+i/8, i%8), DType: safetensors.I64,
			Shape: []int64{experts}})
	}
	head, err := safetensors.Header(nil, tensors)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{tensorrtMeta: fmt.Appendf(nil, `{"num_experts": %d, "num_experts_per_token": 8}`, experts)}
	for rank := range ranks {
		data := make([]byte, 8*steps*experts)
		for i := range steps {
			data[8*experts*i] = byte(rank + 1)
		}
		files[fmt.Sprintf("rank%d.safetensors", rank)] = append(head[:len(head):len(head)], data...)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, tensors, head = nil, nil, nil
	live := func() int64 {
		var now runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&now)
		return int64(now.HeapAlloc)
	}
	before := live()
	r := mustRead(t, dir)
	kept, walking, n := live()-before, int64(0), 0
	for _, err := range r.Steps() {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n%1024 == 0 {
			walking = max(walking, live()-before)
		}
	}
	// the places of the tensors take a hundredth
	const size = int64(ranks * steps * experts * 8)
	if kept > size/32 || walking > size/32 || r.Slots() != (1+2+3+4)*steps || n != steps {
		t.Errorf("%d KiB are kept and %d KiB while walking over %d steps of %d KiB", kept>>10, walking>>10, n, size>>10)
	}
}
