package logits

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router"
)

// An entry's logits take two values: high for the experts of the plan, low for all others. The
// chosen experts of a token are equal, so their combine weights are, and the gap to the others is
// as large as a softmax or sigmoid can tell apart: at 32 a float32 sigmoid has long been exactly
// 1, and at −32 it is 1e-14, while e³² is still far from overflow in kernels that compute it
// directly. Both are exact in every element type.
const (
	high = 32
	low  = -high
)

// DType is the element type of an entry's logits, by the name PyTorch uses.
type DType string

// The element types routers are given in practice.
const (
	Float32  DType = "float32"
	BFloat16 DType = "bfloat16"
	Float16  DType = "float16"
)

// dtypes lists them in the order help shows them.
var dtypes = []string{string(Float32), string(BFloat16), string(Float16)}

// ParseDType reads an element type's name.
func ParseDType(s string) (DType, error) {
	if slices.Contains(dtypes, s) {
		return DType(s), nil
	}
	return "", fmt.Errorf("unknown element type %q: want %s", s, strings.Join(dtypes, ", "))
}

// DTypeOf is the element type in which engines keep the router logits of a model.
func DTypeOf(m router.Model) DType {
	return map[string]DType{"f32": Float32, "bf16": BFloat16}[m.LogitsDType]
}

// stored is the element type's name inside the file.
func (d DType) stored() safetensors.DType {
	return map[DType]safetensors.DType{Float32: safetensors.F32, BFloat16: safetensors.BF16, Float16: safetensors.F16}[d]
}

// encoded are the two logits in the element type, little-endian: high is 0x42000000, 0x4200 and
// 0x5000, and low has the sign besides.
func (d DType) encoded() (high, low []byte) {
	high = map[DType][]byte{Float32: {0, 0, 0, 0x42}, BFloat16: {0, 0x42}, Float16: {0, 0x50}}[d]
	low = bytes.Clone(high)
	low[len(low)-1] |= 0x80
	return high, low
}

// largestBias is the largest spread of a correction bias, max − min over the
// experts, that the two logits tolerate whatever the single values are: a bias
// with a smaller spread leaves every choice as it is. fewest is
// the least number of chosen experts that a token has in one of its groups.
//
//	ungrouped, or two and more in each group:  score(high) − score(low)
//	a group entered for a single expert:       half of that
//
// The first keeps every chosen expert above every other, and the sum of a chosen
// group's two best above any other group's. With one chosen expert the second
// best of its group has the low logit, and two biased ones elsewhere may pass it.
// Methods without a bias tolerate any: +Inf.
//
// It holds for real numbers. Routers add float32 ones, whose sums round.
func largestBias(g router.Gate, fewest int) float64 {
	if !g.Method.Biased() {
		return math.Inf(1)
	}
	gap := g.Method.Score(high) - g.Method.Score(low)
	if g.Shape.Grouped() && g.Shape.GroupSize() > 1 && fewest < 2 { // its score rests on an expert that is not chosen
		return gap / 2
	}
	return gap
}
