package capture

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Takes reports whether the file at path is of a kind that Read takes, or is so
// plainly meant to be one that it has the best reason to refuse it: an export, a
// report of nsys, or a trace of PyTorch's profiler. What cannot be opened is judged
// by its name.
func Takes(path string) bool {
	if isReport(path) || strings.EqualFold(filepath.Ext(path), ".sqlite") {
		return true
	}
	head := Head(path, torchHead)
	for _, mark := range []string{sqliteMagic, lfsMark} {
		if bytes.HasPrefix(head, []byte(mark)) {
			return true
		}
	}
	return bytes.Contains(head, []byte(`"traceEvents"`))
}

// Head is the first bytes of a file, at most n, behind gzip too. It is empty for
// what cannot be read, and for pipes, which would have to be waited for.
func Head(path string, n int64) []byte {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	in, err := unzipped(f)
	if err != nil {
		return nil
	}
	head, _ := io.ReadAll(io.LimitReader(in, n)) // of a damaged file, what can be read
	return head
}

// torchHead is how far into a trace of PyTorch's profiler its list of events
// begins at the latest: before it stand the properties of a machine's GPUs, less
// than a kilobyte for each.
const torchHead = 1 << 16
