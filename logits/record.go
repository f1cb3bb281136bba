package logits

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"

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
	r := Record{path: f.Name()}
	var m metadata
	if err := m.read(f.Metadata(), r); err != nil {
		return Record{}, err
	}
	r.PlanName, r.Rank, r.checksum = m.Plan, m.Rank, m.Checksum
	r.Spec = Spec{
		Model: m.Model, Plan: m.Planner, Mode: m.Mode, Layer: m.Layer, Seed: m.Seed, DType: m.DType,
		Gate: router.Gate{
			Method: m.Method, Scale: m.Scale,
			Shape: router.Shape{Experts: m.Experts, TopK: m.TopK, Groups: m.Groups, TopKGroups: m.TopKGroups},
		},
	}
	err := errors.Join(r.setExtent(m), r.setLayout(m), r.setTolerated(m))
	if err == nil && m.Bias != noBias {
		r.Spec.Gate.Bias, err = f.Float32s(tensorBias)
	}
	if err != nil {
		return Record{}, err
	}
	if r.Spec, err = r.Spec.withDefaults(); err != nil {
		return Record{}, err
	}
	if err := r.Spec.checkEntry(r.Rank, r.Tokens); err != nil {
		return Record{}, err
	}
	return r, r.match(f)
}

// read takes the values of a header's metadata.
func (m *metadata) read(values map[string]string, r Record) error {
	if have := values["schema"]; have != schema {
		return r.wrongValue("schema", strconv.Quote(schema), have)
	}
	text, err := json.Marshal(values)
	if err == nil {
		err = json.Unmarshal(text, m, json.RejectUnknownMembers(true))
	}
	wrong := new(json.SemanticError)
	if !errors.As(err, &wrong) {
		return err
	}
	key := wrong.JSONPointer.LastToken()
	switch {
	case errors.Is(err, json.ErrUnknownName):
		return r.wrong(metadataPosition(key), "no such key in schema "+schema, "one")
	case wrong.GoType.Kind() == reflect.Float32:
		return r.wrongValue(key, "a number", values[key])
	}
	return r.wrongValue(key, "a whole number", values[key])
}

func (r *Record) setExtent(m metadata) error {
	if m.Tokens == anyTokens && m.Rows != nil && m.Period != nil {
		r.Tokens, r.Rows, r.Period = AnyTokens, *m.Rows, *m.Period
		return nil
	}
	n, err := strconv.ParseUint(m.Tokens, 10, 31)
	if err != nil {
		return r.wrongValue("tokens_per_rank", "a whole number, or any with rows and period", m.Tokens)
	}
	r.Tokens, r.Rows = int(n), int(n)
	return nil
}

func (r *Record) setLayout(m metadata) (err error) {
	switch {
	case m.Experts > maxExperts:
		return r.wrongValue("experts", fmt.Sprintf("at most %d", maxExperts), strconv.Itoa(m.Experts))
	case m.Layout == contiguous:
		if r.Spec.Layout, err = router.Contiguous(m.Experts, m.Ranks); err != nil {
			return r.wrongValue("ranks", fmt.Sprintf("1 to %d", m.Experts), strconv.Itoa(m.Ranks))
		}
		return nil
	}
	var held [][]int32
	if err = json.Unmarshal([]byte(m.Layout), &held); err == nil {
		r.Spec.Layout, err = router.Placed(m.Experts, held)
	}
	if err != nil {
		return r.wrongValue("layout", fmt.Sprintf("%q or the experts of each rank", contiguous), m.Layout)
	}
	return nil
}

func (r *Record) setTolerated(m metadata) error {
	r.Feasibility = Feasibility{ProjectedRows: m.Projected, LargestBias: math.Inf(1)}
	if m.Tolerated == "any" {
		return nil
	}
	x, err := strconv.ParseFloat(m.Tolerated, 64)
	if r.Feasibility.LargestBias = x; err != nil || !(x >= 0) {
		return r.wrongValue("bias_spread_survived", "a number or any", m.Tolerated)
	}
	return nil
}

// match compares the record, spelled out again, with the metadata it was read
// from, the file's name and the tensors.
func (r Record) match(f *safetensors.File) error {
	id := r.Spec.identify(r.PlanName, r.Rank, r.extent())
	meta, again := f.Metadata(), texts(r.Feasibility.describe(id, r.checksum))
	for _, key := range slices.Sorted(maps.Keys(again)) {
		if value, ok := meta[key]; !ok || value != again[key] {
			return r.wrongValue(key, strconv.Quote(again[key]), value)
		}
	}
	for _, key := range []string{"rows", "period"} {
		if again[key] == "" && meta[key] != "" {
			return r.wrong(metadataPosition(key), "none beside a number of tokens", "one")
		}
	}
	if name, have := fileName(id), filepath.Base(f.Name()); name != have {
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

// wrongValue is an error about a value of the metadata.
func (r Record) wrongValue(key, want, have string) error {
	return r.wrong(metadataPosition(key), want, strconv.Quote(have))
}

// Schema is the JSON schema (draft 2020-12) of an entry's header: the safetensors header,
// which names the tensors and holds the metadata.
//
//go:embed schema.json
var Schema string
