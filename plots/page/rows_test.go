package page

import (
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/source"
)

// The arms keep their places and names whatever the order of inputs; traces
// that cannot be told apart by arm keep the names of their inputs.
func TestArmsOf(t *testing.T) {
	trace := func(arm string) *nsys.Trace { return &nsys.Trace{Arm: arm} }
	for want, inputs := range map[string][]source.Item{
		"learned routing, balanced routing": {{Name: "a", Trace: trace("perfect")},
			{Name: "b", Trace: trace("normal")}},
		"balanced routing, a, b": {{Name: "a", Trace: trace("normal")},
			{Name: "b", Trace: trace("normal")}, {Name: "c", Trace: trace("perfect")}},
		"learned routing, balanced routing, x, y": {{Name: "x", Trace: trace("")}, {Name: "p", Trace: trace("perfect")},
			{Name: "y", Trace: trace("")}, {Name: "n", Trace: trace("normal")}},
		"mixed": {{Name: "m", Trace: trace("mixed")}, {Name: "cache", Cache: cache()}},
	} {
		var got []string
		for _, a := range armsOf(programOf(inputs...).Inputs) {
			got = append(got, a.Name)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("arms %q, want %q", got, want)
		}
	}
}
