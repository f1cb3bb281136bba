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

// routes is what routed_experts holds: nested lists, base64 of a .npy (vLLM), or of int32 whose shape
// stands beside it (SGLang).
func routes(v, shape any) (a tensor.Array, err error) {
	text := word(v)
	if text == "" {
		return arrayOf(v)
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return a, fmt.Errorf("want base64, have %.40q", text)
	}
	if bytes.HasPrefix(raw, []byte(tensor.NumPyMagic)) {
		return tensor.ParseNumPy(raw)
	}
	dims, err := arrayOf(shape)
	if err != nil {
		return a, errors.New(`base64 of numbers without their shape; add "shape": [tokens, layers, top-k] beside it`)
	}
	return tensor.Dense(raw, "int32", dims.Values)
}

// maxCalibration bounds the choices of one iteration, which are compressed.
const maxCalibration = 1 << 28

// calibrated reads calibration_data.json: the slots that a rank's tokens chose, layer after layer, as base64 of
// compressed int32, with layer_idx, num_slots and token_selected_slots_shape (tokens and top-k) of each in the metadata
// beside it. Slots are experts where none is redundant, and are taken as such.
func (c *collector) calibrated(v any, of context) error {
	raw, err := base64.StdEncoding.DecodeString(word(v))
	if err != nil || of.metadata == nil {
		return errors.New("want base64 beside the metadata of its layers")
	}
	packed, err := zlib.NewReader(bytes.NewReader(raw))
	if err == nil {
		raw, err = io.ReadAll(io.LimitReader(packed, maxCalibration))
	}
	if err != nil {
		return errors.New("want base64 of what zlib compressed, whole")
	}
	for _, layer := range items(of.metadata) {
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
