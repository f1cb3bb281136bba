package counts

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/logits/safetensors"
)

// recording is a made folder of TensorRT-LLM's expert statistics.
type recording struct{ ranks, iterations, layers, experts int }

// The numbers from which iterations and layers count.
const firstIteration, firstLayer = 100, 3

// write writes the folder. Neighboring experts take a random part of each
// other's eight slots, so a rank's slots add up to the same in every step.
func (m recording) write(t testing.TB, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	meta := fmt.Sprintf(`{"num_experts": %d, "num_experts_per_token": 8}`, m.experts)
	if err := os.WriteFile(filepath.Join(dir, tensorrtMeta), []byte(meta), 0o600); err != nil {
		t.Fatal(err)
	}
	var tensors []safetensors.Tensor
	for i := range m.iterations {
		for l := range m.layers {
			tensors = append(tensors, safetensors.Tensor{Name: fmt.Sprintf("%d_%d", firstIteration+i, firstLayer+l),
				DType: safetensors.I64, Shape: []int64{int64(m.experts)}})
		}
	}
	slices.SortFunc(tensors, func(a, b safetensors.Tensor) int { return strings.Compare(a.Name, b.Name) })
	head, err := safetensors.Header(nil, tensors)
	if err != nil {
		t.Fatal(err)
	}
	for rank := range m.ranks {
		if err := m.writeRank(filepath.Join(dir, fmt.Sprintf("rank%d.safetensors", rank)), rank, head,
			len(tensors)); err != nil {
			t.Fatal(err)
		}
	}
}

func (m recording) writeRank(path string, rank int, head []byte, tensors int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	w.Write(head)
	rng := rand.New(rand.NewPCG(uint64(rank), 0))
	var counts []byte
	for range tensors {
		counts = counts[:0]
		for range m.experts / 2 {
			moved := rng.Uint64N(9)
			counts = binary.LittleEndian.AppendUint64(counts, 8+moved)
			counts = binary.LittleEndian.AppendUint64(counts, 8-moved)
		}
		w.Write(counts)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

// A recording is not held in memory, neither by its record nor while it is judged.
func TestMemoryOfRecording(t *testing.T) {
	if testing.Short() {
		t.Skip("writes and reads 32 MiB")
	}
	dir := t.TempDir()
	m := recording{ranks: 4, iterations: 512, layers: 8, experts: 256}
	m.write(t, dir)
	size := int64(m.ranks*m.iterations*m.layers*m.experts) * 8
	live := func() int64 {
		var now runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&now)
		return int64(now.HeapAlloc)
	}
	before := live()
	r := mustRead(t, dir)
	kept := live() - before
	walking, n := int64(0), 0
	for _, err := range r.Steps() {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n%1024 == 0 {
			walking = max(walking, live()-before)
		}
	}
	runtime.KeepAlive(r)
	// the places of the 4,096 tensors of 2 KiB in each file take a hundredth
	if kept > size/32 || walking > size/32 {
		t.Errorf("%d KiB are kept and %d KiB while walking over the steps of %d KiB", kept>>10, walking>>10, size>>10)
	}
}
