package tensor

import "github.com/moebalance/moebalance/logits/safetensors"

// A file is a tree of *Parts, Stored, []any (tuples of a pickle), int64, string, float64, bool and nil.
type (
	// Parts are the fields of an object, in their order, or the items of a list, without names. Of a name that comes
	// twice the last one counts.
	Parts []Part
	// Part is a value, and its name.
	Part struct {
		Name  string
		Value any
	}
	// Stored is an array, which is read when it is asked for.
	Stored func() Array
)

// OpenSafetensors opens the content of a file of safetensors: its tensors by name.
func OpenSafetensors(path string, text []byte) *Parts {
	root := &Parts{}
	for _, t := range Must(safetensors.Parse(path, text)) {
		*root = append(*root, Part{t.Name, Stored(func() Array { return Dense(t.Data, string(t.DType), t.Shape) })})
	}
	return root
}
