package counts

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/moebalance/moebalance/compare/counts/tensor"
	"github.com/moebalance/moebalance/logits/safetensors"
)

// routedFormat names records of what each token chose.
const routedFormat = "routed experts per token"

// token reads what one token chose at the layer named beside it. Which tokens shared a forward pass is not recorded,
// so the counts are sums over many.
func (w *objects) token(v value, of context) error {
	if of.layer < 0 { // about the model
		return nil
	}
	a, err := v.array()
	if err != nil {
		return err
	}
	if len(a.Shape) != 1 {
		return fmt.Errorf("want the experts of one token, have %v", a.Shape)
	}
	w.Window, of.step = true, 0
	key, err := w.key(of)
	if err != nil {
		return err
	}
	return w.choose(key, a.Values)
}

// request reads what the tokens of one request chose.
func (w *objects) request(v value, of context) error {
	a, err := of.routes(v)
	if err == nil && len(w.axes) == len(a.Shape) {
		a, err = w.axes.canonical(a)
	}
	if err != nil {
		return err
	}
	return w.tokens(a, of)
}

// tokens adds ids of [tokens, layers, top-k]. The tokens of a request's prompt, where it is known, were routed in
// prefill.
func (w *objects) tokens(a tensor.Array, of context) error {
	if len(a.Shape) != 3 || a.Values == nil || a.Shape[2] < 1 || a.Shape[2] > maxTopK || a.Shape[1] > maxLayers {
		return fmt.Errorf("want expert ids of [tokens, layers, top-k], have %v; of top-1 ids, --axes tokens,layers says "+
			"what two dimensions are", a.Shape)
	}
	w.Window, of.step = true, 0
	layers, k := int(a.Shape[1]), int(a.Shape[2])
	for i := range len(a.Values) / k {
		if of.layer = int64(i % layers); of.prompt > 0 {
			of.phase = Decode
		}
		if of.start+int64(i/layers) < of.prompt {
			of.phase = Prefill
		}
		key, err := w.key(of)
		if err == nil {
			err = w.choose(key, a.Values[i*k:(i+1)*k])
		}
		if err != nil {
			return fmt.Errorf("token %d: %w", i/layers, err)
		}
	}
	return nil
}

// idTypes are the types of ids by NumPy's names.
var idTypes = map[string]safetensors.DType{"uint8": safetensors.U8, "int16": safetensors.I16, "uint16": safetensors.U16,
	"int32": safetensors.I32, "int64": safetensors.I64}

// routes is what routed_experts holds: nested lists, base64 of a .npy (vLLM), of int32 whose shape
// stands beside it (SGLang), or of what Dynamo's handlers for vLLM describe.
func (of *context) routes(v value) (tensor.Array, error) {
	if v.isList() {
		return v.array()
	}
	described := struct {
		Data  string  `json:"data"`
		Shape []int64 `json:"shape"`
		Start int64   `json:"start"`
		DType string  `json:"dtype"`
	}{Shape: of.shape, Start: of.start, DType: "int32"}
	into := any(&described.Data)
	if len(v.json) > 0 && v.json[0] == '{' {
		into = &described
	}
	if json.Unmarshal(v.json, into) != nil {
		return tensor.Array{}, fmt.Errorf("want lists, base64, or data, shape and dtype, have %.40s", v.json)
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

// calibration is what TensorRT-LLM's calibration says of the choices of a layer in one iteration on one rank.
type calibration struct {
	Layer int64   `json:"layer_idx"`
	Slots int64   `json:"num_slots"`
	Shape []int64 `json:"token_selected_slots_shape"` // tokens and top-k
}

// calibrations are what stands beside raw_data; nil for anything else.
func calibrations(v value) (list []calibration) {
	if json.Unmarshal(v.json, &list) != nil {
		return nil
	}
	return list
}

// maxCalibration bounds the choices of one iteration, which are compressed.
const maxCalibration = 1 << 28

// calibrated reads calibration_data.json: the slots that a rank's tokens chose, layer after layer, as base64 of
// compressed int32. Slots are experts where none is redundant, and are taken as such.
func (w *objects) calibrated(v value, of context) error {
	raw, err := base64.StdEncoding.DecodeString(v.word())
	if err != nil || of.calibration == nil {
		return errors.Join(err, errors.New("want base64 beside the metadata of its layers"))
	}
	packed, err := zlib.NewReader(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	if raw, err = io.ReadAll(io.LimitReader(packed, maxCalibration)); err != nil {
		return err
	}
	for _, layer := range of.calibration {
		if len(layer.Shape) != 2 || layer.Shape[0] < 0 || layer.Shape[1] < 1 || layer.Shape[1] > maxTopK ||
			layer.Shape[0] > int64(len(raw)) {
			return fmt.Errorf("layer %d: want slots of [tokens, top-k], have %v", layer.Layer, layer.Shape)
		}
		n := min(int64(len(raw)), 4*layer.Shape[0]*layer.Shape[1])
		a, err := tensor.Dense(raw[:n], safetensors.I32, layer.Shape, false)
		if err != nil {
			return fmt.Errorf("layer %d: %w", layer.Layer, err)
		}
		of.layer, w.known, raw = layer.Layer, max(w.known, layer.Slots), raw[n:]
		key, err := w.key(of)
		for _, ids := range a.Rows() {
			if err == nil {
				err = w.choose(key, ids)
			}
		}
		if err != nil {
			return err
		}
	}
	w.Ranks = int(of.ranks)
	return bounded(0, w.Ranks)
}
