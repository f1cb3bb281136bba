package logits

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// memory is an entry's file in memory.
type memory struct{ b []byte }

func (m *memory) WriteAt(p []byte, at int64) (int, error) {
	if end := int(at) + len(p); end > len(m.b) {
		if end > cap(m.b) {
			m.b = append(make([]byte, 0, 2*end), m.b...)
		}
		m.b = m.b[:end]
	}
	return copy(m.b[at:], p), nil
}

// writeAndCheck plans, writes and verifies one entry in memory, and returns its size.
func writeAndCheck(s Spec, w *entryWriter, c *checker, file *memory, rank, tokens int) (int64, error) {
	plan, err := s.plan(tokens)
	if err != nil {
		return 0, err
	}
	file.b = file.b[:0]
	made, err := w.write(context.Background(), plan, rank, sized(tokens), file)
	if err != nil {
		return 0, err
	}
	name := fileName(s.identify(plan.Name(), rank, sized(tokens)))
	return made.bytes, c.checkBytes(name, file.b)
}

// BenchmarkProveAllSizes plans, writes in memory and verifies the 22 common
// batch sizes of DeepSeek-V3 for one rank of eight: 41,215 tokens, 40 MiB of
// float32 logits, every row routed by the exact method. Target: 100 ms on 2 cores.
func BenchmarkProveAllSizes(b *testing.B) {
	s, err := specOf(b, deepSeek(), 8).withDefaults()
	if err != nil {
		b.Fatal(err)
	}
	sizes := CommonTokens()
	type worker struct {
		m    *entryWriter
		c    *checker
		file memory
	}
	known := new(plans)
	workers := make(chan *worker, len(sizes))
	for range len(sizes) {
		workers <- nil
	}
	b.ReportAllocs()
	tokens := 0
	for b.Loop() {
		total := int64(0)
		sizesDone := make([]int64, len(sizes))
		err := forEach(context.Background(), runtime.GOMAXPROCS(0), len(sizes), func(_ context.Context, i int) error {
			i = len(sizes) - 1 - i
			w := <-workers
			if w == nil {
				m, err := newEntryWriter(s)
				if err != nil {
					return err
				}
				w = &worker{m: m, c: newChecker(known)}
			}
			defer func() { workers <- w }()
			sizesDone[i], err = writeAndCheck(s, w.m, w.c, &w.file, 0, sizes[i])
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		for i, n := range sizesDone {
			total += n
			tokens += sizes[i]
		}
		b.SetBytes(total)
	}
	b.ReportMetric(float64(tokens)/b.Elapsed().Seconds(), "tokens/s")
}

// BenchmarkFillCache writes the 22 common batch sizes of DeepSeek-V3 for all
// eight ranks to disk: 176 entries, 332 MiB, each renamed when it is
// whole. BenchmarkPlainWrite writes as many bytes, which is what to compare with; the
// target is 60 % of it.
func BenchmarkFillCache(b *testing.B) {
	s := specOf(b, deepSeek(), 8)
	b.ReportAllocs()
	for b.Loop() {
		dir, err := os.MkdirTemp(b.TempDir(), "cache")
		if err != nil {
			b.Fatal(err)
		}
		total := int64(0)
		for _, w := range fill(b, openCache(b, dir, s), CommonTokens()...) {
			total += w.Bytes
		}
		b.SetBytes(total)
		b.StopTimer()
		if err := os.RemoveAll(dir); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkFillWholeCache fills the cache of BenchmarkFillCache again: nothing is
// missing, and every byte is held against what it should be. `cat` of the folder is
// what to compare with; the target is twice its time on 2 cores.
func BenchmarkFillWholeCache(b *testing.B) {
	s, dir := specOf(b, deepSeek(), 8), b.TempDir()
	total := int64(0)
	for _, o := range fill(b, openCache(b, dir, s), CommonTokens()...) {
		total += o.Bytes
	}
	b.SetBytes(total)
	b.ReportAllocs()
	for b.Loop() {
		for _, o := range fill(b, openCache(b, dir, s), CommonTokens()...) {
			if o.New || o.Damage != nil {
				b.Fatalf("written again: %+v", o)
			}
		}
	}
}

func BenchmarkPlainWrite(b *testing.B) {
	const size = 332 << 20
	chunk := make([]byte, 1<<20)
	for i := range chunk {
		chunk[i] = byte(i)
	}
	b.SetBytes(size)
	for b.Loop() {
		path := filepath.Join(b.TempDir(), "plain")
		f, err := os.Create(path)
		if err != nil {
			b.Fatal(err)
		}
		for range size / len(chunk) {
			if _, err := f.Write(chunk); err != nil {
				b.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := os.Remove(path); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

var _ io.WriterAt = (*memory)(nil)

// BenchmarkGet reads an entry of 8192 tokens of DeepSeek-V3, 8 MiB, from the cache.
func BenchmarkGet(b *testing.B) {
	c := openCache(b, b.TempDir(), specOf(b, deepSeek(), 8))
	b.ReportAllocs()
	for b.Loop() {
		e, err := c.Get(5, 8192)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(e.Logits) + 4*len(e.IDs)))
	}
}
