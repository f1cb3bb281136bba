package nsys

import (
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkRead is the whole analysis of one export: 3,920 kernels, 11,972 API
// calls, 1,712 ranges.
func BenchmarkRead(b *testing.B) {
	path := filepath.Join(testdata, "gptoss-ep4-loop/normal.sqlite")
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	b.ReportAllocs()
	for b.Loop() {
		mustRead(b, Options{Threshold: 0.1}, path)
	}
}
