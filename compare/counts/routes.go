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
	if v.isNumbers() {
		return v.array()
	}
	described := struct {
		Data  string  `json:"data"`
		Shape []int64 `json:"shape"`
		Start int64   `json:"start"`
		DType string  `json:"dtype"`
	}{v.word(), of.shape, of.numbers[isStart], "int32"}
	if !v.holds(`{"`) || v.holds("{") && json.Unmarshal(v.json, &described) != nil {
		return tensor.Array{}, fmt.Errorf("want lists, base64, or data, shape and dtype, have %.40s", v.json)
	}
	of.numbers[isStart] = described.Start
	raw, err := base64.StdEncoding.DecodeString(described.Data)
	switch {
	case err != nil:
		return tensor.Array{}, fmt.Errorf("want base64, have %.40q", described.Data)
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
		return errors.New("want base64 beside the metadata of its layers")
	}
	packed, err := zlib.NewReader(bytes.NewReader(raw))
	if err == nil {
		raw, err = io.ReadAll(io.LimitReader(packed, maxCalibration))
	}
	if err != nil {
		return errors.New("want base64 of what zlib compressed, whole")
	}
	for _, part := range of.calibration {
		if len(part.Shape) != 2 || part.Shape[1] < 1 || part.Shape[1] > maxTopK || part.Shape[0] < 0 ||
			part.Shape[0] > int64(len(raw)) {
			return fmt.Errorf("layer %d: want slots of [tokens, top-k], have %v", part.Layer, part.Shape)
		}
		n := min(int64(len(raw)), 4*part.Shape[0]*part.Shape[1])
		a, err := tensor.Dense(raw[:n], "int32", part.Shape, false)
		if err == nil {
			of.numbers[isLayer], c.known, raw = part.Layer, max(c.known, part.Slots), raw[n:]
			err = c.array(a, Axes{"tokens", "topk"}, of)
		}
		if err != nil {
			return fmt.Errorf("layer %d: %w", part.Layer, err)
		}
	}
	return c.onRanks(of.numbers[isRanks])
}
