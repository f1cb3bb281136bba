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
)

// routes is what routed_experts holds: nested lists, base64 of a .npy (vLLM), of int32 whose shape
// stands beside it (SGLang), or of what Dynamo's handlers for vLLM describe.
func routes(v value, of *context) (tensor.Array, error) {
	if v.isList() {
		return v.array()
	}
	described := struct {
		Data  string  `json:"data"`
		Shape []int64 `json:"shape"`
		Start int64   `json:"start"`
		DType string  `json:"dtype"`
	}{v.word(), of.shape, of.start, "int32"}
	if !v.holds(`{"`) || v.holds("{") && json.Unmarshal(v.json, &described) != nil {
		return tensor.Array{}, fmt.Errorf("want lists, base64, or data, shape and dtype, have %.40s", v.json)
	}
	of.start = described.Start
	raw, err := base64.StdEncoding.DecodeString(described.Data)
	switch {
	case err != nil:
		return tensor.Array{}, err
	case bytes.HasPrefix(raw, []byte(tensor.NumPyMagic)):
		return tensor.ParseNumPy(raw)
	case len(described.Shape) == 0:
		return tensor.Array{},
			errors.New(`base64 of numbers without their shape; add "shape": [tokens, layers, top-k] beside it`)
	}
	return tensor.Dense(raw, described.DType, described.Shape, false)
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
func (c *collector) calibrated(v value, of context) error {
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
		if len(layer.Shape) != 2 || layer.Shape[1] < 1 || layer.Shape[1] > maxTopK || layer.Shape[0] < 0 ||
			layer.Shape[0] > int64(len(raw)) {
			return fmt.Errorf("layer %d: want slots of [tokens, top-k], have %v", layer.Layer, layer.Shape)
		}
		n := min(int64(len(raw)), 4*layer.Shape[0]*layer.Shape[1])
		a, err := tensor.Dense(raw[:n], "int32", layer.Shape, false)
		if err == nil {
			of.layer, c.known, raw = layer.Layer, max(c.known, layer.Slots), raw[n:]
			err = c.array(a, Axes{"tokens", "topk"}, of.label)
		}
		if err != nil {
			return fmt.Errorf("layer %d: %w", layer.Layer, err)
		}
	}
	return c.onRanks(of.ranks)
}
