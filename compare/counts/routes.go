package counts

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/moebalance/moebalance/compare/counts/tensor"
	"github.com/moebalance/moebalance/logits/safetensors"
)

// routedFormat names records of what each token chose.
const routedFormat = "routed experts per token"

var (
	// routedKey is a key under which the experts of tokens stand.
	routedKey = regexp.MustCompile(`"(?:routed_experts|topk_ids|expert_ids|selected_experts)"\s*:`)
	// layerKey is a key that names the layer of all that is below it.
	layerKey = regexp.MustCompile(`^layers?[._-]?(\d{1,5})$`)
)

// maxTopK is far above any model's.
const maxTopK = 64

// routes count what tokens chose, by layer and phase. Which tokens shared a forward pass is not
// recorded, so the counts are sums over many.
type routes struct {
	*collector
	layers map[stepKey]*routedLayer
	known  int // experts, as an object about the model says
}

func newRoutes(c *collector) *routes {
	return &routes{collector: c, layers: map[stepKey]*routedLayer{}}
}

// readRoutes reads choices wherever they stand in a document.
func readRoutes(d *document, c *collector) error {
	r := newRoutes(c)
	c.Window, c.atLeast = true, true
	n := 0
	for v, err := range d.values() {
		if n++; err == nil {
			err = r.walk(v, origin{layer: -1})
		}
		if err != nil {
			return fmt.Errorf("record %d: %w", n, err)
		}
	}
	return r.finish()
}

// origin is what an object, or one around it, says of the tokens in it.
type origin struct {
	layer         int // −1 where nothing says which
	phase         Phase
	shape         []int64 // of base64 that is no .npy
	start, prompt int     // tokens of the request before the first one here; tokens of its prompt, 0 for unknown
	depth         int     // in how many lists and objects it stands
}

// mostDepth is more than any document has; every level is read once more.
const mostDepth = 32

// walk counts the choices in a value: of a token at a layer, of a request, or of all that is below it.
func (r *routes) walk(v value, of origin) error {
	if of.depth++; of.depth > mostDepth {
		return fmt.Errorf("want at most %d lists and objects within one another", mostDepth)
	}
	for part := range v.items() {
		if err := r.walk(part, of); err != nil {
			return err
		}
	}
	keys := v.keys()
	if err := keys.checked(); err != nil {
		return err
	}
	ids, err := r.describe(&of, keys)
	if err == nil && ids != nil && of.layer >= 0 { // else about the model
		err = r.add(of.phase, of.layer, ids)
	}
	for _, f := range keys {
		below := of
		if m := layerKey.FindStringSubmatch(f.key); m != nil && err == nil {
			below.layer, _ = strconv.Atoi(m[1]) // five digits at most
		}
		switch {
		case err != nil:
			return err
		case f.key == "routed_experts" && len(f.json) > 0 && f.json[0] != 'n': // null
			err = r.addRequest(f.json, of)
		case len(f.json) > 0 && (f.json[0] == '{' || f.json[0] == '['):
			err = r.walk(f.value, below)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", f.key, err)
		}
	}
	return err
}

// describe reads what an object says of its tokens, and the experts of one.
func (r *routes) describe(of *origin, keys object) (ids []int64, err error) {
	for _, f := range keys {
		into := (*int)(nil)
		switch f.key {
		case "layer", "layer_id", "layer_idx":
			into = &of.layer
		case "num_experts":
			into = &r.known
		case "routed_experts_start_len":
			into = &of.start
		case "prompt_tokens":
			into = &of.prompt
		case "usage":
			if n, ok := f.keys().get("prompt_tokens").whole(); ok {
				of.prompt = int(n)
			}
		case "prompt_token_ids":
			of.prompt = bytes.Count(f.json, []byte(",")) + min(1, len(f.json)/3) // [] holds none
		case "phase":
			of.phase, err = phaseOf(f.word()) // a number means something else
		case "shape":
			if a, failed := numbers(f.json); failed == nil {
				of.shape = a.Values
			}
		case "topk_ids", "expert_ids", "selected_experts":
			var a tensor.Array
			if a, err = numbers(f.json); err == nil && len(a.Shape) != 1 {
				err = fmt.Errorf("want the experts of one token, have %v", a.Shape)
			}
			ids = a.Values
		}
		if into != nil {
			var n int64
			n, err = whole(f.json)
			*into = int(n)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.key, err)
		}
	}
	return ids, nil
}

// addRequest adds the ids of one request.
func (r *routes) addRequest(text []byte, of origin) error {
	a, err := of.array(text)
	if err == nil && len(r.axes) == len(a.Shape) {
		a, err = r.axes.canonical(a)
	}
	if err != nil {
		return err
	}
	return r.addArray(a, of.start, of.prompt)
}

// idTypes are the types of ids by NumPy's names.
var idTypes = map[string]safetensors.DType{"uint8": safetensors.U8, "int16": safetensors.I16, "uint16": safetensors.U16,
	"int32": safetensors.I32, "int64": safetensors.I64}

// array is what routed_experts holds: nested lists, base64 of a .npy (vLLM), of int32 whose shape
// stands beside it (SGLang), or of what Dynamo's handlers for vLLM describe.
func (of *origin) array(text []byte) (tensor.Array, error) {
	if text[0] == '[' {
		return numbers(text)
	}
	described := struct {
		Data  string  `json:"data"`
		Shape []int64 `json:"shape"`
		Start int     `json:"start"`
		DType string  `json:"dtype"`
	}{Shape: of.shape, Start: of.start, DType: "int32"}
	into := any(&described.Data)
	if text[0] == '{' {
		into = &described
	}
	if json.Unmarshal(text, into) != nil {
		return tensor.Array{}, fmt.Errorf("want lists, base64, or data, shape and dtype, have %.40s", text)
	}
	of.start = described.Start
	raw, err := base64.StdEncoding.DecodeString(described.Data)
	dtype := idTypes[described.DType]
	switch {
	case err != nil:
		return tensor.Array{}, err
	case dtype == "":
		return tensor.Array{}, fmt.Errorf("want the dtype of ids, such as int32, have %q", described.DType)
	case bytes.HasPrefix(raw, []byte(tensor.NumPyMagic)):
		return tensor.ParseNumPy(raw)
	case len(described.Shape) != 3:
		return tensor.Array{},
			errors.New(`base64 of numbers without their shape; add "shape": [tokens, layers, top-k] beside it`)
	}
	return tensor.Dense(raw, dtype, described.Shape, false)
}

// addArray adds ids of [tokens, layers, top-k], of which the first is token start of a request. The
// tokens of its prompt, where it is known, were routed in prefill.
func (r *routes) addArray(a tensor.Array, start, prompt int) error {
	if len(a.Shape) != 3 || a.Values == nil || a.Shape[2] < 1 || a.Shape[2] > maxTopK || a.Shape[1] > maxLayers {
		return fmt.Errorf("want expert ids of [tokens, layers, top-k], have %v; of top-1 ids, --axes tokens,layers says "+
			"what two dimensions are", a.Shape)
	}
	layers, k := int(a.Shape[1]), int(a.Shape[2])
	for i := range len(a.Values) / k {
		phase := Phase("")
		if prompt > 0 {
			phase = Decode
		}
		if start+i/layers < prompt {
			phase = Prefill
		}
		if err := r.add(phase, i%layers, a.Values[i*k:(i+1)*k]); err != nil {
			return fmt.Errorf("token %d: %w", i/layers, err)
		}
	}
	return nil
}

// routedLayer is the slots of the experts of one layer. Rows are tokens.
type routedLayer struct {
	counts        []int64
	rows, padding int // all, and those that name no expert
}

// add adds what one token chose at one layer.
func (r *routes) add(phase Phase, layer int, ids []int64) error {
	if layer < 0 || layer >= maxLayers || len(ids) < 1 || len(ids) > maxTopK {
		return fmt.Errorf("want 1 to %d experts of a layer below %d, have %d of layer %d", maxTopK, maxLayers, len(ids),
			layer)
	}
	if r.TopK = cmp.Or(r.TopK, len(ids)); len(ids) != r.TopK {
		return fmt.Errorf("layer %d: want %d experts a token, have %d", layer, r.TopK, len(ids))
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
	for _, id := range ids {
		if id < 0 || id >= maxExperts {
			return fmt.Errorf("layer %d: want an expert from 0 to %d, have %d", layer, maxExperts-1, id)
		}
		if more := int(id) + 1 - len(l.counts); more > 0 {
			l.counts = append(l.counts, make([]int64, more)...)
		}
		l.counts[id]++
	}
	return nil
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
	rows, padded, named := 0, 0, false
	for _, l := range r.layers {
		r.Experts = max(r.Experts, len(l.counts))
		rows, named = rows+l.rows, named || l.padding < l.rows
		if l.padding < l.rows { // else a dense layer
			padded += l.padding
		}
	}
	if seen := r.Experts; r.known > 0 {
		if r.atLeast, r.Experts = false, r.known; seen > r.known {
			return fmt.Errorf("want experts below num_experts, %d, have %d", r.known, seen-1)
		}
	}
	if rows > 0 && !named {
		return errors.New("want expert ids, have only 0 or −1: the engine recorded no routing")
	}
	for key, l := range r.layers {
		r.at(key).Load.PerExpert = append([]int64{}, l.counts...) // a dense layer has counts too, of 0
	}
	if padded > 0 {
		r.warn("padded_tokens", "choices", padded)
	}
	return nil
}
