package control

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"

	"github.com/moebalance/moebalance/router/input"
)

// Record is what moebalance_hook.alternate prints: a launch that led itself through its
// segments.
type Record struct {
	SchemaVersion int               `json:"schema_version"`
	Kind          string            `json:"kind"`
	Routers       map[string]string `json:"routers"` // of the arms, by name
	Blocks        []struct {
		Order    string    `json:"order"`
		Segments []Measure `json:"segments"`
	} `json:"blocks"`
}

// Measure is a segment of a record.
type Measure struct {
	Arm      string          `json:"arm"`
	Sequence int             `json:"sequence"`
	StartNS  int64           `json:"start_ns"`
	Seconds  float64         `json:"seconds"`
	Value    json.RawMessage `json:"value"` // what was measured: nothing, a number, or numbers by name
}

// recordKind is the kind of a record.
const recordKind = "moebalance alternate"

// longest is how many bytes a record may have.
const longest = 64 << 20

// IsRecord reports whether a file begins like a record.
func IsRecord(head []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(head), []byte("{")) && bytes.Contains(head, []byte(recordKind))
}

// ErrNoRecord is a text without a record.
var ErrNoRecord = errors.New("want a record of moebalance_hook.alternate")

// ReadRecord finds the record in a file: the whole of it, or a line among others. Several are of one
// launch, which has the blocks of all.
func ReadRecord(path string) (r Record, err error) {
	f, err := os.Open(path)
	if err != nil {
		return r, err
	}
	defer f.Close()
	found := ErrNoRecord
	lines := bufio.NewReaderSize(io.LimitReader(f, 1<<40), 1<<16)
	for {
		line, err := lines.ReadSlice('\n')
		if bytes.HasPrefix(bytes.TrimSpace(line), []byte("{")) {
			whole := bytes.Clone(line)
			for err == bufio.ErrBufferFull && len(whole) < longest {
				line, err = lines.ReadSlice('\n')
				whole = append(whole, line...)
			}
			if bytes.Contains(whole, []byte(recordKind)) {
				before := r
				if r, found = parseRecord(path, whole); found == nil && len(before.Blocks) > 0 {
					found = r.after(path, before)
				}
				if found != nil {
					return r, found
				}
			}
		}
		switch {
		case err == bufio.ErrBufferFull:
		case err == io.EOF && errors.Is(found, ErrNoRecord):
			text, failed := input.ReadFile(path, longest) // one that was indented
			if failed == nil && bytes.Contains(text, []byte(recordKind)) {
				return parseRecord(path, text)
			}
			return r, fmt.Errorf("%s: %w", path, found)
		case err == io.EOF:
			return r, found
		case err != nil:
			return r, err
		}
	}
}

func parseRecord(path string, text []byte) (r Record, err error) {
	wrong := func(expected, format string, args ...any) (Record, error) {
		return r, &input.Error{File: path, Expected: expected, Found: fmt.Sprintf(format, args...)}
	}
	if err := json.Unmarshal(text, &r); err != nil || r.Kind != recordKind {
		return r, &input.Error{File: path, Expected: "a record of moebalance_hook.alternate", Found: "other JSON", Err: err}
	}
	switch {
	case r.SchemaVersion != 1:
		return wrong("schema_version 1", "%d", r.SchemaVersion)
	case len(r.Routers) != 2:
		return wrong("two routers", "%d", len(r.Routers))
	case len(r.Blocks) == 0:
		return wrong("a block or more", "none")
	}
	for i, b := range r.Blocks {
		for _, s := range b.Segments {
			if _, ok := r.Routers[s.Arm]; !ok {
				return wrong("segments of its routers", "one of %q in block %d", s.Arm, i)
			}
			if !(s.Seconds > 0) || math.IsInf(s.Seconds, 0) {
				return wrong("positive seconds", "%g in block %d", s.Seconds, i)
			}
		}
	}
	return r, nil
}

// after puts the blocks of an earlier record of the same launch before the record's own.
func (r *Record) after(path string, earlier Record) error {
	if !maps.Equal(r.Routers, earlier.Routers) {
		return &input.Error{File: path, Expected: "records of the same routers, because a file is one launch",
			Found: fmt.Sprintf("%v and %v", earlier.Routers, r.Routers)}
	}
	r.Blocks = append(earlier.Blocks, r.Blocks...)
	return nil
}

// SameLaunch reports whether two records are of one launch: they have a segment of the same time.
func (r Record) SameLaunch(other Record) bool {
	begun := map[int64]bool{0: false}
	for _, b := range r.Blocks {
		for _, s := range b.Segments {
			begun[s.StartNS] = s.StartNS != 0
		}
	}
	for _, b := range other.Blocks {
		for _, s := range b.Segments {
			if begun[s.StartNS] {
				return true
			}
		}
	}
	return false
}

// Normal is the name of the arm that takes the place of the learned router, empty where the
// record has none: of two, the one that is called so, or else the one that is not balanced.
func (r Record) Normal() (name string) {
	for arm, router := range r.Routers {
		if arm == own.Name || name == "" && arm != Perfect && router != Perfect {
			name = arm
		}
	}
	return name
}
