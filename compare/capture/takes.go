package capture

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"

	"github.com/moebalance/moebalance/router/input"
)

// Takes reports whether the file at path is of a kind that Read takes, or is so
// plainly meant to be one that it has the best reason to refuse it: an export, a
// report of nsys, or a trace of PyTorch's profiler. What cannot be opened is judged
// by its name.
func Takes(path string) bool {
	_, err := input.Head(path, 0)
	head := Head(path, torchHead)
	return isReport(path) || strings.EqualFold(filepath.Ext(path), ".sqlite") || errors.Is(err, input.ErrPointer) ||
		bytes.HasPrefix(head, []byte(sqliteMagic)) || bytes.Contains(head, []byte(`"traceEvents"`))
}

// Head is the first bytes of a regular file, at most n, behind gzip too. It is empty for what cannot be read.
func Head(path string, n int64) []byte {
	f, _, err := input.Regular(path)
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
