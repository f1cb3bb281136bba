package logits

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/logits/safetensors"
)

// DType is the element type of an entry's logits, by the name PyTorch uses.
type DType string

// The element types routers are given in practice.
const (
	Float32  DType = "float32"
	BFloat16 DType = "bfloat16"
	Float16  DType = "float16"
)

// DTypes lists them in the order help shows them.
var DTypes = []string{string(Float32), string(BFloat16), string(Float16)}

// ParseDType reads an element type's name.
func ParseDType(s string) (DType, error) {
	if slices.Contains(DTypes, s) {
		return DType(s), nil
	}
	return "", fmt.Errorf("unknown element type %q: want %s", s, strings.Join(DTypes, ", "))
}

// stored is the element type's name inside the file.
func (d DType) stored() safetensors.DType {
	switch d {
	case BFloat16:
		return safetensors.BF16
	case Float16:
		return safetensors.F16
	}
	return safetensors.F32
}
