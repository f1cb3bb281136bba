package logits

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// The tensors of an entry.
const (
	tensorIDs    = "expert_ids"      // I32 [rows, top_k]
	tensorBias   = "correction_bias" // F32 [experts], when the gate has one
	tensorLogits = "logits"          // [rows, experts]
)

// tensors lists an entry's tensors in the order of their bytes: four-byte types
// first, so that each begins where its element type can be mapped.
func (s Spec) tensors(rows int) []safetensors.Tensor {
	shape := s.Gate.Shape
	t, e, k := int64(rows), int64(shape.Experts), int64(shape.TopK)
	list := []safetensors.Tensor{{Name: tensorIDs, DType: safetensors.I32, Shape: []int64{t, k}}}
	if s.Gate.Bias != nil {
		list = append(list, safetensors.Tensor{Name: tensorBias, DType: safetensors.F32, Shape: []int64{e}})
	}
	return append(list, safetensors.Tensor{Name: tensorLogits, DType: s.DType.stored(), Shape: []int64{t, e}})
}

// Record is what an entry says about itself.
type Record struct {
	Spec        Spec
	PlanName    string // the plan with its version, such as "diagonal/1"
	Rank        int
	Tokens      int // of every rank; AnyTokens
	Rows        int // of the tensors: Tokens, or the table's
	Period      int // of the table; 0 if not known, or with a number of tokens
	Feasibility Feasibility

	path     string
	checksum string
}

// family is a key that the entries of one spec share, whatever their rank and
// batch size.
func (r Record) family() string { return fileName(r.Spec.identify(r.PlanName, 0, extent{})) }

func (r Record) extent() extent { return extent{r.Tokens, r.Rows, r.Period} }

// wrong is an error about the entry's file.
func (r Record) wrong(position, want, have string) error {
	return &input.Error{File: r.path, Position: position, Expected: want, Found: have}
}

// readRecord takes the record out of an opened entry and checks it against the
// file's name and tensors. It reads no tensor but the bias.
func readRecord(f *safetensors.File) (Record, error) {
	meta := f.Metadata()
	m := metadataReader{values: meta, record: Record{path: f.Name()}}
	if meta[keySchema] != schema {
		m.fail(keySchema, strconv.Quote(schema))
		return Record{}, m.err
	}
	x := m.extent()
	r := Record{
		PlanName: meta[keyPlan], Rank: m.integer(keyRank), Tokens: x.tokens, Rows: x.rows, Period: x.period,
		Feasibility: m.feasibility(),
		path:        f.Name(), checksum: meta[keyChecksum],
		Spec: Spec{
			Model: meta[keyModel], Plan: meta[keyPlanner], Mode: router.Mode(meta[keyMode]), Layer: m.integer(keyLayer),
			Seed: m.seed(), DType: DType(meta[keyDType]),
			Gate: router.Gate{
				Method: router.Method(meta[keyMethod]),
				Shape: router.Shape{
					Experts: m.integer(keyExperts), TopK: m.integer(keyTopK),
					Groups: m.integer(keyGroups), TopKGroups: m.integer(keyTopKG),
				},
				Scale: m.float(keyScale),
			},
		},
	}
	r.Spec.Layout = m.layout(r.Spec.Gate.Shape.Experts)
	if m.err == nil && meta[keyBias] != noBias {
		r.Spec.Gate.Bias, m.err = f.Float32s(tensorBias)
	}
	if m.err != nil {
		return Record{}, m.err
	}
	var err error
	if r.Spec, err = r.Spec.withDefaults(); err != nil {
		return Record{}, err
	}
	if err := r.Spec.checkEntry(r.Rank, r.Tokens); err != nil {
		return Record{}, err
	}
	return r, r.match(f, meta)
}

// match compares the record, spelled out again, with the metadata it was read
// from, the file's name and the tensors.
func (r Record) match(f *safetensors.File, meta map[string]string) error {
	again := r.Spec.identify(r.PlanName, r.Rank, r.extent())
	name := fileName(again)
	r.Feasibility.add(again)
	again[keyChecksum] = r.checksum
	for _, key := range slices.Sorted(maps.Keys(again)) {
		if value, ok := meta[key]; !ok || value != again[key] {
			return r.wrong(metadataPosition(key), strconv.Quote(again[key]), strconv.Quote(value))
		}
		delete(meta, key)
	}
	if len(meta) > 0 {
		key := slices.Min(slices.Collect(maps.Keys(meta)))
		return r.wrong(metadataPosition(key), "no such key in schema "+schema, "one")
	}
	if have := filepath.Base(f.Name()); name != have {
		return r.wrong("", "the name "+strconv.Quote(name)+" for this content", "another name")
	}
	want, have := r.Spec.tensors(r.Rows), f.Tensors()
	if len(want) != len(have) {
		return r.wrong("", quantity.Count(len(want), "tensor"), strconv.Itoa(len(have)))
	}
	for i := range want {
		if want[i].String() != have[i].String() {
			return r.wrong("", "tensor "+want[i].String(), have[i].String())
		}
	}
	return nil
}

func metadataPosition(key string) string { return fmt.Sprintf("metadata %q", key) }

// metadataReader reads typed values out of the map and keeps the first error.
type metadataReader struct {
	record Record // whose path errors name
	values map[string]string
	err    error
}

func (m *metadataReader) fail(key, want string) {
	if m.err == nil {
		m.err = m.record.wrong(metadataPosition(key), want, strconv.Quote(m.values[key]))
	}
}

func (m *metadataReader) integer(key string) int {
	n, err := strconv.ParseUint(m.values[key], 10, 31)
	if err != nil {
		m.fail(key, "a whole number")
	}
	return int(n)
}

func (m *metadataReader) float(key string) float32 {
	x, err := strconv.ParseFloat(m.values[key], 32)
	if err != nil {
		m.fail(key, "a number")
	}
	return float32(x)
}

func (m *metadataReader) seed() uint64 {
	n, err := strconv.ParseUint(m.values[keySeed], 10, 64)
	if err != nil {
		m.fail(keySeed, "a whole number")
	}
	return n
}

func (m *metadataReader) layout(experts int) router.Layout {
	text := m.values[keyLayout]
	var l router.Layout
	var err error
	switch {
	case experts > maxExperts:
		m.fail(keyExperts, fmt.Sprintf("at most %d", maxExperts))
	case text == contiguous:
		if l, err = router.Contiguous(experts, m.integer(keyRanks)); err != nil {
			m.fail(keyRanks, fmt.Sprintf("1 to %d", experts))
		}
	default:
		var held [][]int32
		if err = json.Unmarshal([]byte(text), &held); err == nil {
			l, err = router.Placed(experts, held)
		}
		if err != nil {
			m.fail(keyLayout, fmt.Sprintf("%q or the experts of each rank", contiguous))
		}
	}
	return l
}
