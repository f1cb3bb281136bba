package counts

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/counts/tensor"
	"github.com/moebalance/moebalance/logits/safetensors"
)

const routedFormat = "routed experts per token"

// hasRoutes reports records of the experts that each token chose: of a request, or of a
// token and layer.
func hasRoutes(s *source) bool {
	for _, value := range s.values[:min(len(s.values), 2)] { // the first may be about the model
		if value[0] != '{' {
			continue
		}
		var record routedRecord
		if _ = json.Unmarshal(value, &record); len(record.arrays(0)) > 0 || record.layer() != nil &&
			record.ids() != nil {
			return true
		}
	}
	return false
}

// maxTopK is far above any model's.
const maxTopK = 64

func repeats(ids []int64) bool {
	for i, id := range ids {
		for _, other := range ids[:i] {
			if id == other {
				return true
			}
		}
	}
	return false
}

// isPlaceholder reports a row that engines leave at 0 or −1: of a dense layer or a
// padded token.
func isPlaceholder(ids []int64) bool {
	for _, id := range ids {
		if id != ids[0] || id > 0 {
			return false
		}
	}
	return len(ids) > 1 || ids[0] < 0
}

// routedRecord is one line or value of JSON: one token at one layer, a line about the
// model, or an engine's answer to a request, with its routes at the top, in its
// choices, or in SGLang's additions.
type routedRecord struct {
	Layer      *int    `json:"layer"`
	LayerID    *int    `json:"layer_id"`
	LayerIdx   *int    `json:"layer_idx"`
	TopK       []int64 `json:"topk_ids"`
	ExpertIDs  []int64 `json:"expert_ids"`
	Phase      string  `json:"phase"`
	NumExperts int     `json:"num_experts"`

	Routed         json.RawMessage `json:"routed_experts"`
	Shape          []int64         `json:"shape"` // of base64 that is no .npy
	Start          int             `json:"routed_experts_start_len"`
	Prompt         int             `json:"prompt_tokens"`
	PromptTokenIDs []int           `json:"prompt_token_ids"`
	Usage          struct {
		Prompt int `json:"prompt_tokens"`
	} `json:"usage"`
	Choices []routedRecord `json:"choices"`
	Outputs []routedRecord `json:"outputs"`
	Meta    *routedRecord  `json:"meta_info"`
	Engine  *routedRecord  `json:"engine_data"`
	SGLExt  *routedRecord  `json:"sgl_ext"`
	Ext     *routedRecord  `json:"sglext"`
}

func (r *routedRecord) layer() *int { return cmp.Or(r.Layer, r.LayerID, r.LayerIdx) }

func (r *routedRecord) ids() []int64 {
	if r.TopK != nil {
		return r.TopK
	}
	return r.ExpertIDs
}

// arrays are the parts of a request that hold routes, each with the length of its
// prompt, 0 where that is unknown.
func (r *routedRecord) arrays(prompt int) (found []*routedRecord) {
	r.Prompt = cmp.Or(len(r.PromptTokenIDs), r.Usage.Prompt, r.Prompt, prompt)
	if len(r.Routed) > 0 && string(r.Routed) != "null" {
		found = append(found, r)
	}
	for _, list := range [][]routedRecord{r.Choices, r.Outputs} {
		for i := range list {
			found = append(found, list[i].arrays(r.Prompt)...)
		}
	}
	for _, part := range []*routedRecord{r.Meta, r.Engine, r.SGLExt, r.Ext} {
		if part != nil {
			found = append(found, part.arrays(r.Prompt)...)
		}
	}
	return found
}

// readRoutes counts what the tokens chose, by layer. Which tokens shared a forward
// pass is not recorded, so the counts are sums over many.
func readRoutes(s *source, r *Record) error {
	routes := routes{record: r, layers: map[stepKey]*routedLayer{}}
	r.Window, r.atLeast = true, true
	for i, value := range s.values {
		if err := routes.addValue(value); err != nil {
			return fmt.Errorf("record %d: %w", i+1, err)
		}
	}
	return routes.finish()
}

// routes are the choices counted so far.
type routes struct {
	record *Record
	layers map[stepKey]*routedLayer
	known  int // experts, as a line about the model says
}

type routedLayer struct {
	counts                             []int64
	rows, repeated, placeholder, alike int
	last                               []int64 // experts of the tokens not counted yet
	run                                int64   // how many tokens
}

// longRun is how many tokens in a row that choose the same experts are no text: engines
// run thousands of equal tokens to measure memory and to warm up. In published records of
// vLLM, text has at most 7.
const longRun = 128

// count adds the tokens not counted yet, unless they are alike and others are not.
func (l *routedLayer) count() {
	if l.run >= longRun && l.run < int64(l.rows-l.placeholder) {
		l.alike += int(l.run)
		l.run = 0
	}
	for _, id := range l.last {
		for int(id) >= len(l.counts) {
			l.counts = append(l.counts, 0)
		}
		l.counts[id] += l.run
	}
	l.run = 0
}

func (r *routes) addValue(value json.RawMessage) error {
	var record routedRecord
	err := json.Unmarshal(value, &record)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) && !strings.HasSuffix(wrong.Field, "_ids") &&
		!strings.HasPrefix(wrong.Field, "layer") {
		err = nil // of a field that has another meaning there, such as a text named outputs
	}
	if err != nil {
		return err
	}
	for _, part := range record.arrays(0) {
		a, err := part.array()
		if err != nil {
			return fmt.Errorf("routed_experts: %w", err)
		}
		if err := r.addArray(a, part); err != nil {
			return err
		}
	}
	r.known = max(r.known, record.NumExperts)
	if record.layer() == nil || record.ids() == nil {
		return nil // about the model, or of a request
	}
	phase, err := phaseOf(record.Phase)
	if err != nil {
		return err
	}
	return r.add(phase, *record.layer(), record.ids())
}

// array is what routed_experts holds: nested lists, or base64 of a .npy (vLLM), or
// of int32 whose shape stands beside it (SGLang).
func (r *routedRecord) array() (tensor.Array, error) {
	if r.Routed[0] == '[' {
		return numbers(r.Routed)
	}
	text, dtype := "", safetensors.I32
	if r.Routed[0] == '{' { // of Dynamo's handlers for vLLM, _serialize_routed_experts
		var described struct {
			Data  string  `json:"data"`
			Shape []int64 `json:"shape"`
			Start int     `json:"start"`
			DType string  `json:"dtype"`
		}
		if err := json.Unmarshal(r.Routed, &described); err != nil {
			return tensor.Array{}, fmt.Errorf("want data, shape and dtype: %w", err)
		}
		text, r.Shape, r.Start = described.Data, described.Shape, described.Start
		if dtype = idTypes[described.DType]; dtype == "" {
			return tensor.Array{}, fmt.Errorf("want the dtype of ids, such as int32, have %q", described.DType)
		}
	} else if err := json.Unmarshal(r.Routed, &text); err != nil {
		return tensor.Array{}, fmt.Errorf("want lists or base64, have %.40s", r.Routed)
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return tensor.Array{}, err
	}
	if strings.HasPrefix(string(raw[:min(len(raw), len(tensor.NumPyMagic))]), tensor.NumPyMagic) {
		return tensor.ParseNumPy(raw)
	}
	if len(r.Shape) != 3 {
		return tensor.Array{},
			errors.New(`base64 of numbers without their shape; add "shape": [tokens, layers, top-k] beside it`)
	}
	return tensor.Dense(raw, dtype, r.Shape, false)
}

// idTypes are the types of ids by NumPy's names.
var idTypes = map[string]safetensors.DType{"uint8": safetensors.U8, "int16": safetensors.I16, "uint16": safetensors.U16,
	"int32": safetensors.I32, "int64": safetensors.I64}

// addArray adds the ids of one request [tokens, layers, top-k]. The tokens of the
// prompt were routed in prefill.
func (r *routes) addArray(a tensor.Array, p *routedRecord) error {
	if len(a.Shape) != 3 || a.Values == nil || a.Shape[2] < 1 || a.Shape[2] > maxTopK || a.Shape[1] > maxLayers {
		return fmt.Errorf("want expert ids of [tokens, layers, top-k], have %v", a.Shape)
	}
	layers, k := int(a.Shape[1]), int(a.Shape[2])
	for i := range len(a.Values) / k {
		phase := Phase("")
		if token := p.Start + i/layers; p.Prompt > 0 && token < p.Prompt {
			phase = Prefill
		} else if p.Prompt > 0 {
			phase = Decode
		}
		if err := r.add(phase, i%layers, a.Values[i*k:(i+1)*k]); err != nil {
			return fmt.Errorf("token %d: %w", i/layers, err)
		}
	}
	return nil
}

// add adds what one token chose at one layer.
func (r *routes) add(phase Phase, layer int, ids []int64) error {
	if layer < 0 || layer >= maxLayers || len(ids) < 1 || len(ids) > maxTopK {
		return fmt.Errorf("want 1 to %d experts of a layer below %d, have %d of layer %d", maxTopK, maxLayers, len(ids),
			layer)
	}
	r.record.TopK = cmp.Or(r.record.TopK, len(ids))
	if len(ids) != r.record.TopK {
		return fmt.Errorf("layer %d: want %d experts a token, have %d", layer, r.record.TopK, len(ids))
	}
	key := stepKey{layer: layer, phase: phase}
	l := r.layers[key]
	if l == nil {
		l = &routedLayer{}
		r.layers[key] = l
	}
	l.rows++
	switch {
	case isPlaceholder(ids):
		l.placeholder++
		return nil
	case repeats(ids):
		l.repeated++
	}
	for _, id := range ids {
		if id < 0 || id >= maxExperts {
			return fmt.Errorf("layer %d: want an expert from 0 to %d, have %d", layer, maxExperts-1, id)
		}
		r.record.Experts = max(r.record.Experts, int(id)+1)
	}
	if !slices.Equal(ids, l.last) {
		l.count()
		l.last = append(l.last[:0], ids...)
	}
	l.run++
	return nil
}

// finish adds one step per layer and phase.
func (r *routes) finish() error {
	record, seen := r.record, r.record.Experts
	if r.known > 0 {
		if record.atLeast = false; seen > r.known {
			return fmt.Errorf("want experts below num_experts, %d, have %d", r.known, seen-1)
		}
		record.Experts = r.known
	}
	rows, repeated, padded, alike := 0, 0, 0, 0
	for key, l := range r.layers {
		l.count()
		alike += l.alike
		step := key.step()
		step.Load.PerExpert = make([]int64, record.Experts)
		copy(step.Load.PerExpert, l.counts)
		record.held = append(record.held, step)
		rows, repeated = rows+l.rows, repeated+l.repeated
		if l.placeholder < l.rows { // else a dense layer
			padded += l.placeholder
		}
	}
	if rows > 0 && record.Experts == 0 {
		return errors.New("want expert ids, have only 0 or −1: the engine recorded no routing")
	}
	if repeated > 0 {
		record.warn("repeated_experts", "repeated", repeated, "choices", rows)
	}
	if alike > 0 {
		record.warn("alike_tokens", "excluded", alike, "choices", rows, "run", longRun)
	}
	if padded > 0 {
		record.warn("padded_tokens", "choices", padded)
	}
	return nil
}
