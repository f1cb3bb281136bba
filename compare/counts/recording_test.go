package counts

import (
	"bufio"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router"
)

// For measurements of the whole program:
//
//	go test ./compare/counts -run TestRecording -recording.out /tmp/long -recording.ranks 8 -recording.iterations 1000
var (
	recordingOut        = flag.String("recording.out", "", "keep the made recording as this folder")
	recordingRanks      = flag.Int("recording.ranks", 2, "how many ranks it has")
	recordingIterations = flag.Int("recording.iterations", 3, "how many iterations")
)

// recording is a made folder of TensorRT-LLM's expert statistics.
type recording struct{ ranks, iterations, layers, experts int }

// The numbers from which iterations and layers count.
const firstIteration, firstLayer = 100, 3

// slots is what every rank sends in each step.
func (m recording) slots() int64 { return int64(8 * m.experts) }

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

// Every step of a recording is what another reader adds up tensor by tensor, in
// order; the sources add up to the load, and all steps to the sums.
func TestRecording(t *testing.T) {
	m := recording{ranks: *recordingRanks, iterations: *recordingIterations, layers: 58, experts: 256}
	dir := t.TempDir()
	if *recordingOut != "" {
		dir = *recordingOut
	}
	m.write(t, dir)
	r := mustRead(t, dir)
	files := make([]*safetensors.File, m.ranks)
	for rank := range files {
		f, err := safetensors.Open(filepath.Join(dir, fmt.Sprintf("rank%d.safetensors", rank)))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[rank] = f
	}
	n, sums := 0, map[int]router.Load{}
	for s, err := range r.Steps() {
		if err != nil {
			t.Fatal(err)
		}
		if iteration, layer := int64(firstIteration+n/m.layers), firstLayer+n%m.layers; s.Iteration != iteration ||
			s.Layer != layer {
			t.Fatalf("step %d is of iteration %d and layer %d, want %d and %d", n, s.Iteration, s.Layer, iteration,
				layer)
		}
		n++
		load := router.NewLoad(m.experts)
		for rank, f := range files {
			want, err := int64s(f, fmt.Sprintf("%d_%d", s.Iteration, s.Layer))
			if err != nil {
				t.Fatalf("%v: rank %d: %v", s.key(), rank, err)
			}
			load.Merge(router.Load{PerExpert: want})
		}
		if !slices.Equal(s.Load.PerExpert, load.PerExpert) {
			t.Fatalf("%v: load %v, want %v", s.key(), s.Load, load)
		}
		if sums[s.Layer].PerExpert == nil {
			sums[s.Layer] = router.NewLoad(m.experts)
		}
		sums[s.Layer].Merge(load)
	}
	if want := m.iterations * m.layers; n != want || r.Slots() != int64(m.ranks*want)*m.slots() ||
		!reflect.DeepEqual(r.ByLayer(), sums) {
		t.Errorf("%d steps of %d slots, want %d of %d", n, r.Slots(), want, int64(m.ranks*want)*m.slots())
	}
	if len(r.Layers()) != m.layers || len(r.Iterations()) != m.iterations || len(r.Warnings) > 0 {
		t.Errorf("layers %v, iterations %v, warnings %v", r.Layers(), r.Iterations(), r.Warnings)
	}
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

// int64s are the integers of a tensor.
func int64s(f *safetensors.File, name string) ([]int64, error) {
	raw, t, err := f.Bytes(name)
	if err != nil {
		return nil, err
	}
	values := make([]int64, t.Elements())
	return values, safetensors.DecodeIntegers(values, raw, t.DType)
}
