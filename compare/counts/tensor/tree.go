package tensor

import "github.com/moebalance/moebalance/logits/safetensors"

// Stored is an array, which is read when it is asked for. A file is a tree of map[string]any, lists ([]any and, of a
// pickle, *[]any), Stored, int64, string, float64, bool and nil.
type Stored func() Array

// OpenSafetensors opens the content of a file of safetensors: its tensors by name.
func OpenSafetensors(path string, text []byte) map[string]any {
	root := map[string]any{}
	for _, t := range Must(safetensors.Parse(path, text)) {
		root[t.Name] = Stored(func() Array { return Dense(t.Data, string(t.DType), t.Shape) })
	}
	return root
}
