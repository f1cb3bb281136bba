package counts

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/moebalance/moebalance/compare/counts/tensor"
	"github.com/moebalance/moebalance/logits/safetensors"
)

var (
	// routedKey is a key under which the experts of tokens stand.
	routedKey = regexp.MustCompile(`"(?:routed_experts|topk_ids|expert_ids|selected_experts)"\s*:`)
	// layerKey is a key that names the layer of all that is below it.
	layerKey = regexp.MustCompile(`^layers?[._-]?(\d{1,5})$`)
)

// maxTopK is far above any model's.
const maxTopK = 64

// choice is what one object of a document says of a token, a request or a model: of a token at a
// layer, the experts; of a request, routed_experts of all its tokens and layers.
type choice struct {
	layer         int // −1 where neither it nor a key above says which
	ids           []int64
	phase         string
	routed        json.RawMessage
	shape         []int64 // of base64 that is no .npy
	start, prompt int     // tokens of the request before the first one here; tokens of its prompt, 0 for unknown
}

// readRoutes counts what the tokens chose, by layer. Which tokens shared a forward
// pass is not recorded, so the counts are sums over many.
func readRoutes(d *document, r *Record) error {
	routes := routes{record: r, axes: d.axes, layers: map[stepKey]*routedLayer{}}
	r.Window, r.atLeast = true, true
	for i, v := range d.values {
		routes.dec.Reset(bytes.NewBuffer(v.json), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		requests, err := routes.walk(v.json, -1)
		for j := 0; err == nil && j < len(requests); j++ {
			err = routes.addRequest(requests[j])
		}
		if err != nil {
			return fmt.Errorf("record %d: %w", i+1, err)
		}
	}
	return routes.finish()
}

// routes are the choices counted so far.
type routes struct {
	record *Record
	axes   Axes // of routed_experts that are not [tokens, layers, top-k]
	dec    jsontext.Decoder
	layers map[stepKey]*routedLayer
	known  int // experts, as an object about the model says
}

// walk reads the next value of a text, counts the choices of tokens in it, at the layer that the
// key above it names, and returns the requests, whose prompts an object around them may tell.
func (r *routes) walk(text []byte, layer int) (requests []*choice, err error) {
	switch r.dec.PeekKind() {
	case '{':
		return r.walkObject(text, layer)
	case '[':
		if _, err := r.dec.ReadToken(); err != nil {
			return nil, err
		}
		for r.dec.PeekKind() != ']' {
			inner, err := r.walk(text, layer)
			if err != nil {
				return nil, err
			}
			requests = append(requests, inner...)
		}
		_, err = r.dec.ReadToken()
		return requests, err
	}
	return nil, r.dec.SkipValue()
}

func (r *routes) walkObject(text []byte, layer int) (requests []*choice, err error) {
	if _, err := r.dec.ReadToken(); err != nil {
		return nil, err
	}
	c := &choice{layer: layer}
	for r.dec.PeekKind() == '"' {
		name, err := r.dec.ReadToken()
		if err != nil {
			return nil, err
		}
		key := name.String()
		inner, err := r.field(c, key, text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		requests = append(requests, inner...)
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return nil, err
	}
	for _, request := range requests {
		request.prompt = cmp.Or(request.prompt, c.prompt)
	}
	if c.routed != nil {
		requests = append(requests, c)
	}
	if c.ids == nil || c.layer < 0 {
		return requests, nil // about the model, or a request
	}
	phase, err := phaseOf(c.phase)
	if err != nil {
		return nil, err
	}
	return requests, r.add(phase, c.layer, c.ids)
}

// field reads one value of an object into what it says, or looks for choices in it.
func (r *routes) field(c *choice, key string, text []byte) (requests []*choice, err error) {
	var into any
	switch key {
	case "layer", "layer_id", "layer_idx":
		into = &c.layer
	case "phase":
		into = &c.phase
	case "num_experts":
		into = &r.known
	case "routed_experts_start_len":
		into = &c.start
	case "prompt_tokens":
		into = &c.prompt
	case "topk_ids", "expert_ids", "selected_experts":
		into = &c.ids
	case "shape":
		into = &c.shape
	case "routed_experts":
		if c.routed, err = nextValue(&r.dec, text); string(c.routed) == "null" {
			c.routed = nil
		}
		return nil, err
	case "prompt_token_ids":
		ids, err := nextValue(&r.dec, text)
		if len(ids) > 2 {
			c.prompt = 1 + bytes.Count(ids, []byte(","))
		}
		return nil, err
	case "usage":
		var usage struct {
			Prompt int `json:"prompt_tokens"`
		}
		raw, err := nextValue(&r.dec, text)
		if json.Unmarshal(raw, &usage) == nil {
			c.prompt = cmp.Or(c.prompt, usage.Prompt)
		}
		return nil, err
	default:
		if m := layerKey.FindStringSubmatch(key); m != nil {
			layer, _ := strconv.Atoi(m[1]) // five digits at most
			return r.walk(text, layer)
		}
		return r.walk(text, c.layer)
	}
	raw, err := nextValue(&r.dec, text)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, into); err != nil && (key == "phase" || key == "shape") {
		return nil, nil // which has another meaning there
	} else if err != nil {
		return nil, err
	}
	return nil, nil
}

// addRequest adds the ids of one request.
func (r *routes) addRequest(c *choice) error {
	a, err := c.array()
	if err == nil && len(r.axes) == len(a.Shape) {
		a, err = r.axes.canonical(a)
	}
	if err == nil {
		err = r.addArray(a, c)
	}
	if err != nil {
		return fmt.Errorf("routed_experts: %w", err)
	}
	return nil
}

// array is what routed_experts holds: nested lists, or base64 of a .npy (vLLM), or
// of int32 whose shape stands beside it (SGLang).
func (c *choice) array() (tensor.Array, error) {
	if c.routed[0] == '[' {
		return numbers(c.routed)
	}
	text, dtype := "", safetensors.I32
	if c.routed[0] == '{' { // of Dynamo's handlers for vLLM, _serialize_routed_experts
		var described struct {
			Data  string  `json:"data"`
			Shape []int64 `json:"shape"`
			Start int     `json:"start"`
			DType string  `json:"dtype"`
		}
		if err := json.Unmarshal(c.routed, &described); err != nil {
			return tensor.Array{}, fmt.Errorf("want data, shape and dtype: %w", err)
		}
		text, c.shape, c.start = described.Data, described.Shape, described.Start
		if dtype = idTypes[described.DType]; dtype == "" {
			return tensor.Array{}, fmt.Errorf("want the dtype of ids, such as int32, have %q", described.DType)
		}
	} else if err := json.Unmarshal(c.routed, &text); err != nil {
		return tensor.Array{}, fmt.Errorf("want lists or base64, have %.40s", c.routed)
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	switch {
	case err != nil:
		return tensor.Array{}, err
	case bytes.HasPrefix(raw, []byte(tensor.NumPyMagic)):
		return tensor.ParseNumPy(raw)
	case len(c.shape) != 3:
		return tensor.Array{},
			errors.New(`base64 of numbers without their shape; add "shape": [tokens, layers, top-k] beside it`)
	}
	return tensor.Dense(raw, dtype, c.shape, false)
}

// idTypes are the types of ids by NumPy's names.
var idTypes = map[string]safetensors.DType{"uint8": safetensors.U8, "int16": safetensors.I16, "uint16": safetensors.U16,
	"int32": safetensors.I32, "int64": safetensors.I64}

// addArray adds the ids of one request [tokens, layers, top-k]. The tokens of the
// prompt were routed in prefill.
func (r *routes) addArray(a tensor.Array, c *choice) error {
	if len(a.Shape) != 3 || a.Values == nil || a.Shape[2] < 1 || a.Shape[2] > maxTopK || a.Shape[1] > maxLayers {
		return fmt.Errorf("want expert ids of [tokens, layers, top-k], have %v; of top-1 ids, --axes tokens,layers says "+
			"what two dimensions are", a.Shape)
	}
	layers, k := int(a.Shape[1]), int(a.Shape[2])
	for i := range len(a.Values) / k {
		phase := Phase("")
		if token := c.start + i/layers; c.prompt > 0 && token < c.prompt {
			phase = Prefill
		} else if c.prompt > 0 {
			phase = Decode
		}
		if err := r.add(phase, i%layers, a.Values[i*k:(i+1)*k]); err != nil {
			return fmt.Errorf("token %d: %w", i/layers, err)
		}
	}
	return nil
}

// routedLayer is the slots of the experts of one layer. Rows are tokens.
type routedLayer struct {
	counts, alike     []int64 // alike are in runs of equal rows, which may be left out
	rows, alikeRows   int
	repeated, padding int     // rows that name an expert twice, that name none
	last              []int64 // experts of the tokens not counted yet
	run               int64   // how many tokens
}

// longRun is how many tokens in a row that choose the same experts are no text: engines
// run thousands of equal tokens to measure memory and to warm up. In published records of
// vLLM, text has at most 7.
const longRun = 128

// mostLeftOut is the most rows that may be left out for being alike, as a share of all.
const mostLeftOut = 0.05

// count counts the tokens not counted yet, long runs apart. A single expert comes again and again
// where tokens are sorted by it, so that runs of top-1 ids say nothing.
func (l *routedLayer) count() {
	into := &l.counts
	if l.run >= longRun && len(l.last) > 1 {
		into, l.alikeRows = &l.alike, l.alikeRows+int(l.run)
	}
	for _, id := range l.last {
		for int(id) >= len(*into) {
			*into = append(*into, 0)
		}
		(*into)[id] += l.run
	}
	l.run = 0
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
	if isPadding(ids) {
		l.padding++
		return nil
	}
	if slices.Equal(ids, l.last) {
		l.run++
		if repeats(ids) {
			l.repeated++
		}
		return nil
	}
	if repeats(ids) {
		l.repeated++
	}
	for _, id := range ids {
		if id < 0 || id >= maxExperts {
			return fmt.Errorf("layer %d: want an expert from 0 to %d, have %d", layer, maxExperts-1, id)
		}
		r.record.Experts = max(r.record.Experts, int(id)+1)
	}
	l.count()
	l.last, l.run = append(l.last[:0], ids...), 1
	return nil
}

func repeats(ids []int64) bool {
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			return true
		}
	}
	return false
}

// isPadding reports a row that engines leave at 0 or −1, for a dense layer or a padded token.
func isPadding(ids []int64) bool {
	for _, id := range ids {
		if id != ids[0] || id > 0 {
			return false
		}
	}
	return len(ids) > 1 || ids[0] < 0
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
	if err := bounded(record.Experts, 0); err != nil {
		return err
	}
	rows, repeated, padded, alike := 0, 0, 0, 0
	for _, l := range r.layers {
		l.count()
		rows, repeated, alike = rows+l.rows, repeated+l.repeated, alike+l.alikeRows
		if l.padding < l.rows { // else a dense layer
			padded += l.padding
		}
	}
	leaveOut := float64(alike) <= mostLeftOut*float64(rows)
	for key, l := range r.layers {
		step := key.step()
		step.Load.PerExpert = make([]int64, record.Experts)
		copy(step.Load.PerExpert, l.counts)
		for e, n := range l.alike {
			if !leaveOut {
				step.Load.PerExpert[e] += n
			}
		}
		record.held = append(record.held, step)
	}
	if rows > 0 && seen == 0 {
		return errors.New("want expert ids, have only 0 or −1: the engine recorded no routing")
	}
	if repeated > 0 {
		record.warn("repeated_experts", "repeated", repeated, "choices", rows)
	}
	switch {
	case alike > 0 && leaveOut:
		record.warn("alike_tokens", "excluded", alike, "choices", rows, "run", longRun)
	case alike > 0:
		record.warn(AlikeKept, "alike", alike, "choices", rows, "run", longRun)
	}
	if padded > 0 {
		record.warn("padded_tokens", "choices", padded)
	}
	return nil
}

// AlikeKept is the code of the warning that rows are counted that may be no text, for they are
// too many to leave out.
const AlikeKept = "alike_kept"
