package logits

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"syscall"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
)

// manifestName is the file of a cache that says what all its entries are for.
const manifestName = "manifest.json"

const (
	manifestKind    = "moebalance logits"
	manifestVersion = 4
	maxManifest     = 1 << 24 // bytes
)

// manifest is the JSON of a spec.
type manifest struct {
	SchemaVersion int           `json:"schema_version"`
	Kind          string        `json:"kind"`
	Model         string        `json:"model"`
	Method        router.Method `json:"method"`
	router.Shape
	Scale float32     `json:"scale"`
	Ranks int         `json:"ranks"`
	Held  [][]int32   `json:"held"` // by rank: its experts; null where each has as many, in order
	Mode  router.Mode `json:"mode"`
	Seed  uint64      `json:"seed"`
	DType DType       `json:"dtype"`
	High  float32     `json:"high"` // logit of a chosen expert
	Low   float32     `json:"low"`  // logit of any other
}

// manifest is the text that names a spec: two specs that differ have different ones.
func (s Spec) manifest() []byte {
	m := manifest{
		SchemaVersion: manifestVersion, Kind: manifestKind, Model: s.Model, Method: s.Gate.Method, Shape: s.Gate.Shape,
		Scale: s.Gate.Scale, Ranks: s.Layout.Ranks(), Mode: s.Mode, Seed: s.Seed,
		DType: s.DType, High: high, Low: low,
	}
	plain, err := router.Contiguous(s.Layout.Experts(), s.Layout.Ranks())
	if err != nil || !reflect.DeepEqual(plain, s.Layout) {
		for r := range s.Layout.Ranks() {
			m.Held = append(m.Held, s.Layout.Held(r))
		}
	}
	text, _ := json.Marshal(m) // numbers are finite, and texts always marshal
	return append(text, '\n')
}

// readManifest reads the spec of a cache, and checks that it is the one that its text names.
func readManifest(dir string) (Spec, []byte, error) {
	path := filepath.Join(dir, manifestName)
	text, err := input.ReadFile(path, maxManifest)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return Spec{}, nil, fmt.Errorf("no cache at %q: want a folder with %s; make one with 'moebalance logits generate "+
			"--cache', in a new folder where this holds something else", dir, manifestName)
	}
	if err != nil {
		return Spec{}, nil, err
	}
	wrong := &input.Error{File: path, Expected: "the manifest of a cache of this version",
		Try: "generate the cache anew in another folder"}
	var m manifest
	if wrong.Err = json.Unmarshal(text, &m); wrong.Err != nil {
		return Spec{}, nil, wrong
	}
	wrong.Found = fmt.Sprintf("kind %q of version %d", m.Kind, m.SchemaVersion)
	if m.Kind != manifestKind || m.SchemaVersion != manifestVersion {
		return Spec{}, nil, wrong
	}
	s := Spec{Model: m.Model, Gate: router.Gate{Method: m.Method, Shape: m.Shape, Scale: m.Scale},
		Mode: m.Mode, Seed: m.Seed, DType: m.DType}
	if m.Held != nil {
		s.Layout, err = router.Placed(m.Experts, m.Held)
	} else if m.Experts <= maxExperts {
		s.Layout, err = router.Contiguous(m.Experts, m.Ranks)
	}
	if err == nil {
		s, err = s.withDefaults()
	}
	switch {
	case err != nil:
		wrong.Found, wrong.Err = "", err
	case !bytes.Equal(text, s.manifest()):
		wrong.Found = "a damaged one"
	default:
		return s, text, nil
	}
	return Spec{}, nil, wrong
}

// keep writes the manifest of a folder that has none.
func (c *Cache) keep() error {
	if _, err := os.Stat(filepath.Join(c.dir, manifestName)); err == nil {
		return c.match()
	}
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return err
	}
	return c.put(manifestName, c.manifest)
}

// match compares the folder's manifest with the spec's.
func (c *Cache) match() error {
	_, text, err := readManifest(c.dir)
	if err != nil || bytes.Equal(text, c.manifest) {
		return err
	}
	var have, want map[string]json.RawMessage
	_ = errors.Join(json.Unmarshal(text, &have), json.Unmarshal(c.manifest, &want)) // both are manifests
	for _, key := range append([]string{"model"}, slices.Sorted(maps.Keys(want))...) {
		if !bytes.Equal(have[key], want[key]) {
			return &input.Error{File: filepath.Join(c.dir, manifestName), Position: key, Expected: string(want[key]),
				Found: string(have[key]), Try: "a cache is for one spec: choose another folder"}
		}
	}
	return nil
}

// IsCache reports a folder that has a manifest of ours.
func IsCache(dir string) bool {
	_, _, err := readManifest(dir)
	return err == nil
}
