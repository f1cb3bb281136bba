package counts

import (
	"bufio"
	"encoding/binary"
	"errors"
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
	"time"

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
			if err != nil || !slices.Equal(s.Sent[rank].PerExpert, want) || s.Sent[rank].Total() != m.slots() {
				t.Fatalf("%v: rank %d sent %v, want %v (%v)", s.key(), rank, s.Sent[rank], want, err)
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
	if limit := size / 32; kept > limit || walking > limit {
		t.Errorf("%d KiB are kept and %d KiB while walking over the steps of %d KiB, want at most %d", kept>>10,
			walking>>10, size>>10, limit>>10)
	}
}

// What a walk yields is what the headers promised, or an error.
func TestRecordingChangesUnderway(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(path string) error
		want string
	}{
		"cut": {func(path string) error { // within a tick of the file system's clock
			info, err := os.Stat(path)
			return errors.Join(err, os.Truncate(path, 100), os.Chtimes(path, time.Time{}, info.ModTime()))
		}, "has changed"},
		"touched": {func(path string) error { return os.Chtimes(path, time.Time{}, time.Unix(1, 0)) }, "has changed"},
		"gone":    {os.Remove, "no such file"},
	} {
		dir := t.TempDir()
		recording{ranks: 2, iterations: 2, layers: 1, experts: 8}.write(t, dir)
		r := mustRead(t, dir)
		if err := c.harm(filepath.Join(dir, "rank1.safetensors")); err != nil {
			t.Fatal(err)
		}
		_, _, judging := r.Imbalance(Options{})
		_, adding := r.Since(r)
		for _, err := range []error{judging, adding} {
			if err == nil || !strings.Contains(err.Error(), c.want) ||
				!strings.Contains(err.Error(), "rank1.safetensors") || errors.Is(err, ErrOptions) {
				t.Errorf("%s: have %v", name, err)
			}
		}
	}
}

// A record of 100 iterations of 58 layers on 8 ranks, the size of a usual
// recording.
func BenchmarkTensorRT(b *testing.B) {
	dir := b.TempDir()
	m := recording{ranks: 8, iterations: 100, layers: 58, experts: 256}
	m.write(b, dir)
	b.SetBytes(int64(m.ranks*m.iterations*m.layers*m.experts) * 8)
	b.ReportAllocs()
	for b.Loop() {
		r, err := Read(dir)
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := r.Imbalance(Options{Threshold: 0.1}); err != nil {
			b.Fatal(err)
		}
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
