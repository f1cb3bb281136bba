package logits

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/plan"
)

// The tensors of an entry.
const (
	tensorIDs    = "expert_ids"      // I32 [tokens, top_k]
	tensorBias   = "correction_bias" // F32 [experts], when the gate has one
	tensorLogits = "logits"          // [tokens, experts], unless only ids are kept
)

// tensors lists an entry's tensors in the order of their bytes: four-byte types
// first, so that each begins where its element type can be mapped.
func (s Spec) tensors(tokens int) []safetensors.Tensor {
	shape := s.Gate.Shape
	t, e, k := int64(tokens), int64(shape.Experts), int64(shape.TopK)
	list := []safetensors.Tensor{{Name: tensorIDs, DType: safetensors.I32, Shape: []int64{t, k}}}
	if s.Gate.Bias != nil {
		list = append(list, safetensors.Tensor{Name: tensorBias, DType: safetensors.F32, Shape: []int64{e}})
	}
	if !s.IDsOnly {
		list = append(list, safetensors.Tensor{Name: tensorLogits, DType: s.DType.stored(), Shape: []int64{t, e}})
	}
	return list
}

// Record is what an entry says about itself.
type Record struct {
	Spec     Spec
	PlanName string // the plan with its version, such as "diagonal/1"
	Rank     int
	Batch    Batch
	Finding  Finding
	checksum string
}

// Tokens is the number of tokens that the entry is for: those of its rank.
func (r Record) Tokens() int { return r.Batch.On(r.Rank) }

// family is a key that the entries of one spec share, whatever their rank and
// batch.
func (r Record) family() string { return address(r.Spec.identify(r.PlanName, 0, Batch{})) }

// readRecord takes the record out of an opened entry and holds it against the
// file's name and tensors. It reads no tensor but the bias.
func readRecord(f *safetensors.File) (Record, error) {
	meta := f.Metadata()
	if meta[keySchema] != schema {
		return Record{}, fmt.Errorf("want an entry of schema %q, found %q", schema, meta[keySchema])
	}
	p := metadata{values: meta}
	r := Record{
		PlanName: meta[keyPlan],
		Rank:     p.integer(keyRank), Batch: p.batch(),
		Finding:  p.finding(),
		checksum: meta[keyChecksum],
		Spec: Spec{
			Model: meta[keyModel], Plan: meta[keyPlanner], Mode: router.Mode(meta[keyMode]), Layer: p.integer(keyLayer),
			DType: DType(meta[keyDType]), IDsOnly: meta[keyContent] == contentIDs,
			Gate: router.Gate{
				Method: router.Method(meta[keyMethod]),
				Shape: router.Shape{
					Experts: p.integer(keyExperts), TopK: p.integer(keyTopK),
					Groups: p.integer(keyGroups), TopKGroups: p.integer(keyTopKG),
				},
				Scale: p.float(keyScale),
			},
		},
	}
	p.knobs(&r.Spec.Knobs)
	r.Spec.Layout = p.layout(r.Spec.Gate.Shape.Experts)
	if p.err == nil && meta[keyBias] != noBias {
		r.Spec.Gate.Bias, p.err = f.Float32s(tensorBias)
	}
	if p.err != nil {
		return Record{}, p.err
	}
	spec, err := r.Spec.withDefaults()
	if err != nil {
		return Record{}, err
	}
	r.Spec = spec
	if err := r.match(f, meta); err != nil {
		return Record{}, err
	}
	return r, nil
}

// match holds the record, spelled out again, against the metadata it was read
// from, the file's name and the tensors.
func (r Record) match(f *safetensors.File, meta map[string]string) error {
	if err := r.Spec.hasRank(r.Rank); err != nil {
		return err
	}
	if err := r.Spec.admit(r.Batch); err != nil {
		return err
	}
	again := r.Spec.identify(r.PlanName, r.Rank, r.Batch)
	name := address(again)
	r.Finding.note(again)
	again[keyChecksum] = r.checksum
	for _, key := range slices.Sorted(maps.Keys(again)) {
		if value, ok := meta[key]; !ok || value != again[key] {
			return fmt.Errorf("metadata %q: want %q, found %q", key, again[key], value)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(meta)) {
		if _, known := again[key]; !known {
			return fmt.Errorf("metadata %q: want no such key in schema %s", key, schema)
		}
	}
	if found := filepath.Base(f.Name()); name != found {
		return fmt.Errorf("want the name %q for this content, found it under another", name)
	}
	want, found := r.Spec.tensors(r.Tokens()), f.Tensors()
	if len(want) != len(found) {
		return fmt.Errorf("want %d tensors, found %d", len(want), len(found))
	}
	for i := range want {
		if want[i].String() != found[i].String() {
			return fmt.Errorf("want tensor %v, found %v", want[i], found[i])
		}
	}
	return nil
}

// metadata reads typed values out of the map and keeps the first fault.
type metadata struct {
	values map[string]string
	err    error
}

func (m *metadata) fail(key, want string) {
	if m.err == nil {
		m.err = fmt.Errorf("metadata %q: want %s, found %q", key, want, m.values[key])
	}
}

func (m *metadata) integer(key string) int {
	n, err := strconv.ParseUint(m.values[key], 10, 31)
	if err != nil {
		m.fail(key, "a whole number")
	}
	return int(n)
}

// integers reads what joined wrote.
func (m *metadata) integers(key string) (list []int) {
	if m.values[key] == "" {
		return nil
	}
	for text := range strings.SplitSeq(m.values[key], ",") {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			m.fail(key, "whole numbers with commas between them")
		}
		list = append(list, int(n))
	}
	return list
}

func (m *metadata) batch() Batch {
	if _, differs := m.values[keyOfRanks]; differs {
		return Unequal(m.integers(keyOfRanks)...)
	}
	return Equal(m.integer(keyTokens))
}

func (m *metadata) float(key string) float32 {
	x, err := strconv.ParseFloat(m.values[key], 32)
	if err != nil {
		m.fail(key, "a number")
	}
	return float32(x)
}

func (m *metadata) knobs(o *plan.Options) {
	d := json.NewDecoder(strings.NewReader(m.values[keyKnobs]))
	d.DisallowUnknownFields()
	if d.Decode(o) != nil {
		m.fail(keyKnobs, "the options of a plan as JSON")
	}
}

func (m *metadata) layout(experts int) router.Layout {
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
