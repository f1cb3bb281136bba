package counts

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"io"

	"github.com/moebalance/moebalance/compare/counts/tensor"
)

// routes is what routed_experts holds: nested lists, base64 of a .npy (vLLM), or of int32 whose shape
// stands beside it (SGLang).
func routes(v, object any) tensor.Array {
	if word(v) == "" {
		return arrayOf(v)
	}
	raw := must(base64.StdEncoding.DecodeString(word(v)))
	if bytes.HasPrefix(raw, []byte(tensor.NumPyMagic)) {
		return tensor.ParseNumPy(raw)
	}
	shape := part(object, "shape")
	if !isArray(shape) {
		fail(`base64 of numbers without their shape; add "shape": [tokens, layers, top-k] beside it`)
	}
	return tensor.Dense(raw, "I32", arrayOf(shape).Values)
}

// calibrated reads calibration_data.json: the slots that a rank's tokens chose, layer after layer, as base64 of
// compressed int32, with layer_idx, num_slots and token_selected_slots_shape (tokens and top-k) of each in the metadata
// beside it. Slots are experts where none is redundant, and are taken as such.
func (c *collector) calibrated(v, object any, of context) {
	layers, raw := part(object, "metadata"), []byte(nil)
	err := attempt(func() { // of one iteration, bounded as it is compressed
		zipped := must(base64.StdEncoding.DecodeString(word(v)))
		raw = must(io.ReadAll(io.LimitReader(must(zlib.NewReader(bytes.NewReader(zipped))), 1<<28)))
	})
	if err != nil || layers == nil {
		fail("want base64 of what zlib compressed, whole, beside the metadata of its layers")
	}
	each(layers, func(_ string, layer any) {
		each(layer, of.describe)
		shape, n := arrayOf(part(layer, "token_selected_slots_shape")).Values, int64(len(raw))/4
		if len(shape) == 2 && shape[0] >= 0 && shape[1] > 0 && shape[0] <= n/shape[1] {
			n = shape[0] * shape[1]
		}
		c.known = max(c.known, of.numbers[isCount]) // slots
		c.array(tensor.Dense(raw[:4*n], "I32", shape), Axes{"tokens", "topk"}, of)
		raw = raw[4*n:]
	})
	c.onRanks(of.numbers[isRanks])
}
