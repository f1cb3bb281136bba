package counts

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"errors"
	"fmt"
	"io"

	"github.com/moebalance/moebalance/compare/counts/tensor"
)

// routes is what routed_experts holds: nested lists, base64 of a .npy (vLLM), of int32 whose shape
// stands beside it (SGLang), or an object of data, shape, dtype and start, as Dynamo's handlers for vLLM write.
func routes(v any, of *context) (tensor.Array, error) {
	dtype := "int32"
	if described, ok := v.(*tensor.Parts); ok {
		shape, err := arrayOf(part(described, "shape"))
		if err != nil {
			return shape, fmt.Errorf("want data, shape and dtype, have %q", keysOf(described))
		}
		of.shape, dtype = shape.Values, word(part(described, "dtype"))
		_ = of.number(isStart, part(described, "start")) // no cell
		v = part(described, "data")
	}
	text := word(v)
	if text == "" {
		return arrayOf(v)
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	switch {
	case err != nil:
		return tensor.Array{}, fmt.Errorf("want base64, have %.40q", text)
	case bytes.HasPrefix(raw, []byte(tensor.NumPyMagic)):
		return tensor.ParseNumPy(raw)
	case len(of.shape) == 0:
		return tensor.Array{},
			errors.New(`base64 of numbers without their shape; add "shape": [tokens, layers, top-k] beside it`)
	}
	return tensor.Dense(raw, dtype, of.shape)
}

// maxCalibration bounds the choices of one iteration, which are compressed.
const maxCalibration = 1 << 28

// calibrated reads calibration_data.json: the slots that a rank's tokens chose, layer after layer, as base64 of
// compressed int32, with layer_idx, num_slots and token_selected_slots_shape (tokens and top-k) of each in the metadata
// beside it. Slots are experts where none is redundant, and are taken as such.
func (c *collector) calibrated(v any, of context) error {
	raw, err := base64.StdEncoding.DecodeString(word(v))
	layers, ok := of.metadata.(*tensor.Parts)
	if err != nil || !ok {
		return errors.New("want base64 beside the metadata of its layers")
	}
	packed, err := zlib.NewReader(bytes.NewReader(raw))
	if err == nil {
		raw, err = io.ReadAll(io.LimitReader(packed, maxCalibration))
	}
	if err != nil {
		return errors.New("want base64 of what zlib compressed, whole")
	}
	for _, layer := range *layers {
		at, _ := number(part(layer.Value, "layer_idx"))
		slots, _ := number(part(layer.Value, "num_slots"))
		shape, _ := arrayOf(part(layer.Value, "token_selected_slots_shape"))
		n := int64(len(raw)) / 4
		if len(shape.Values) == 2 && shape.Values[0] >= 0 && shape.Values[1] > 0 && shape.Values[0] <= n/shape.Values[1] {
			n = shape.Values[0] * shape.Values[1]
		}
		a, err := tensor.Dense(raw[:4*n], "int32", shape.Values)
		if err == nil {
			of.numbers[isLayer], c.known, raw = at, max(c.known, slots), raw[4*n:]
			err = c.array(a, Axes{"tokens", "topk"}, of)
		}
		if err != nil {
			return fmt.Errorf("layer %d: %w", at, err)
		}
	}
	return c.onRanks(of.numbers[isRanks])
}
