package counts

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/moebalance/moebalance/compare/counts/tensor"
	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router"
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
	text   []byte
	dec    *jsontext.Decoder
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
	r.text, r.dec = d.text, decoder(d.text)
	for n := 1; ; n++ {
		requests, err := r.walk(-1)
		if err == io.EOF {
			return r.finish()
		}
		for i := 0; err == nil && i < len(requests); i++ {
			err = r.addRequest(requests[i])
		}
		if err != nil {
			return fmt.Errorf("record %d: %w", n, err)
		}
	}
}

// choice is what one object of a document says of a token, a request or a model.
type choice struct {
	layer         int // −1 where neither it nor a key above says which
	phase         string
	ids           []int64         // of a token at a layer
	routed        json.RawMessage // of a request: experts of all its tokens and layers
	shape         []int64         // of base64 that is no .npy
	start, prompt int             // tokens of the request before the first one here; tokens of its prompt, 0 for unknown
}

// walk reads the next value, counts the choices of tokens in it, at the layer that the key above it
// names, and returns the requests, whose prompts an object around them may tell.
func (r *routes) walk(layer int) (requests []*choice, err error) {
	switch kind := r.dec.PeekKind(); kind {
	case '{':
		c := &choice{layer: layer}
		if requests, err = r.object(c); err != nil {
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
		if err == nil {
			err = r.add(phase, c.layer, c.ids)
		}
		return requests, err
	case '[':
		_, err := r.dec.ReadToken()
		for err == nil && r.dec.PeekKind() != ']' {
			var inner []*choice
			inner, err = r.walk(layer)
			requests = append(requests, inner...)
		}
		if err == nil {
			_, err = r.dec.ReadToken()
		}
		return requests, err
	}
	return nil, r.dec.SkipValue()
}

// object reads the fields of an object into what it says.
func (r *routes) object(c *choice) (requests []*choice, err error) {
	_, err = r.dec.ReadToken()
	for err == nil && r.dec.PeekKind() == '"' {
		name, failed := r.dec.ReadToken()
		if failed != nil {
			return nil, failed
		}
		key := name.String()
		inner, failed := r.field(c, key)
		if failed != nil {
			return nil, fmt.Errorf("%s: %w", key, failed)
		}
		requests = append(requests, inner...)
	}
	if err == nil {
		_, err = r.dec.ReadToken()
	}
	return requests, err
}

// field reads one value of an object, or looks for choices in it.
func (r *routes) field(c *choice, key string) (requests []*choice, err error) {
	var number *int
	switch key {
	case "layer", "layer_id", "layer_idx":
		number = &c.layer
	case "num_experts":
		number = &r.known
	case "routed_experts_start_len":
		number = &c.start
	case "prompt_tokens":
		number = &c.prompt
	case "phase", "shape", "routed_experts", "topk_ids", "expert_ids", "selected_experts", "prompt_token_ids":
	default:
		if key == "usage" && r.dec.PeekKind() == '{' { // of the request
			return r.object(c)
		}
		layer := c.layer
		if m := layerKey.FindStringSubmatch(key); m != nil {
			layer, _ = strconv.Atoi(m[1]) // five digits at most
		}
		return r.walk(layer)
	}
	raw, err := nextValue(r.dec, r.text)
	if err != nil {
		return nil, err
	}
	switch key {
	case "phase":
		c.phase = value{json: raw}.word() // a number means something else
	case "shape":
		if json.Unmarshal(raw, &c.shape) != nil {
			c.shape = nil
		}
	case "prompt_token_ids":
		if len(raw) > 2 {
			c.prompt = 1 + bytes.Count(raw, []byte(","))
		}
	case "routed_experts":
		if c.routed = raw; string(raw) == "null" {
			c.routed = nil
		}
	default:
		if number == nil {
			ids, err := numbers(raw)
			if err == nil && len(ids.Shape) != 1 {
				err = fmt.Errorf("want the experts of one token, have %v", ids.Shape)
			}
			c.ids = ids.Values
			return nil, err
		}
		n, err := whole(raw)
		*number = int(n)
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
		err = r.addArray(a, c.start, c.prompt)
	}
	if err != nil {
		return fmt.Errorf("routed_experts: %w", err)
	}
	return nil
}

// idTypes are the types of ids by NumPy's names.
var idTypes = map[string]safetensors.DType{"uint8": safetensors.U8, "int16": safetensors.I16, "uint16": safetensors.U16,
	"int32": safetensors.I32, "int64": safetensors.I64}

// array is what routed_experts holds: nested lists, base64 of a .npy (vLLM), of int32 whose shape
// stands beside it (SGLang), or of what Dynamo's handlers for vLLM describe.
func (c *choice) array() (tensor.Array, error) {
	if c.routed[0] == '[' {
		return numbers(c.routed)
	}
	described := struct {
		Data  string  `json:"data"`
		Shape []int64 `json:"shape"`
		Start int     `json:"start"`
		DType string  `json:"dtype"`
	}{Shape: c.shape, Start: c.start, DType: "int32"}
	err := error(nil)
	if c.routed[0] == '{' {
		err = json.Unmarshal(c.routed, &described)
	} else {
		err = json.Unmarshal(c.routed, &described.Data)
	}
	if err != nil {
		return tensor.Array{}, fmt.Errorf("want lists, base64, or data, shape and dtype, have %.40s", c.routed)
	}
	c.start = described.Start
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

// AlikeKept is the code of the warning that rows are counted that may be no text, for they are
// too many to leave out.
const AlikeKept = "alike_kept"

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
	if repeats(ids) {
		l.repeated++
	}
	if slices.Equal(ids, l.last) {
		l.run++
		return nil
	}
	for _, id := range ids {
		if id < 0 || id >= maxExperts {
			return fmt.Errorf("layer %d: want an expert from 0 to %d, have %d", layer, maxExperts-1, id)
		}
		r.Experts = max(r.Experts, int(id)+1)
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
	if seen := r.Experts; r.known > 0 {
		if r.atLeast, r.Experts = false, r.known; seen > r.known {
			return fmt.Errorf("want experts below num_experts, %d, have %d", r.known, seen-1)
		}
	}
	rows, repeated, padded, alike, named := 0, 0, 0, 0, false
	for _, l := range r.layers {
		l.count()
		rows, repeated, alike, named = rows+l.rows, repeated+l.repeated, alike+l.alikeRows, named || l.padding < l.rows
		if l.padding < l.rows { // else a dense layer
			padded += l.padding
		}
	}
	if rows > 0 && !named {
		return errors.New("want expert ids, have only 0 or −1: the engine recorded no routing")
	}
	leaveOut := float64(alike) <= mostLeftOut*float64(rows)
	for key, l := range r.layers {
		into := r.at(key)
		if leaveOut {
			l.alike = nil
		}
		into.experts = []int64{} // a dense layer has counts too, of 0
		for _, kept := range [][]int64{l.counts, l.alike} {
			for e, n := range kept {
				if err := r.collector.add(into, router.LevelExpert, e, n, false); err != nil {
					return err
				}
			}
		}
	}
	if repeated > 0 {
		r.warn("repeated_experts", "repeated", repeated, "choices", rows)
	}
	switch {
	case alike > 0 && leaveOut:
		r.warn("alike_tokens", "excluded", alike, "choices", rows, "run", longRun)
	case alike > 0:
		r.warn(AlikeKept, "alike", alike, "choices", rows, "run", longRun)
	}
	if padded > 0 {
		r.warn("padded_tokens", "choices", padded)
	}
	return nil
}
