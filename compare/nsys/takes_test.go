package nsys

import (
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// What Read takes is known by what it holds, and what other readers take is left
// to them.
func TestTakes(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	zipped := func(name, content string) string {
		path := filepath.Join(dir, name)
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		zip := gzip.NewWriter(f)
		_, err = zip.Write([]byte(content))
		if err := errors.Join(err, zip.Close(), f.Close()); err != nil {
			t.Fatal(err)
		}
		return path
	}
	export := filepath.Join(testdata, "gptoss-graph/node-normal.sqlite")
	for path, want := range map[string]bool{
		export: true, summaryOf(t, export): true,
		filepath.Join(testdata, "torch/rank0.pt.trace.json"):              true,
		filepath.Join(testdata, "torch/rank1.pt.trace.json.gz"):           true,
		file("lfs.bin", "version https://git-lfs.github.com/spec/v1\n"):   true,
		file("report.nsys-rep", "x"):                                      true,
		file("gone.qdstrm", "x"):                                          true,
		filepath.Join(dir, "missing.sqlite"):                              true,
		file("bench.json", `{"schema_version": 1, "kind": "bench"}`):      false,
		zipped("bench.json.gz", `{"schema_version": 1, "kind": "bench"}`): false,
		file("empty", ""):             false,
		file("cut.gz", "\x1f\x8b"):    false,
		filepath.Join(dir, "missing"): false,
		dir:                           false,
	} {
		if have := Takes(path); have != want {
			t.Errorf("%s: want %v, have %v", path, want, have)
		}
	}
}

// A name that is wrong is told before minutes are spent on those before it.
func TestMissingFileIsToldFirst(t *testing.T) {
	read := int64(0)
	o := Options{Progress: func(n int64) { read += n }}
	paths := []string{filepath.Join(testdata, "gptoss-graph/node-normal.sqlite"),
		filepath.Join(t.TempDir(), "missing.sqlite")}
	if _, err := Read(t.Context(), paths, o); !errors.Is(err, os.ErrNotExist) || read != 0 {
		t.Errorf("%d bytes read before %v", read, err)
	}
}
