package render

import (
	"testing"

	"github.com/moebalance/moebalance/compare/nsys/wait"
	"github.com/moebalance/moebalance/router"
)

// Names of templates differ far from their beginning: people see them from there.
func TestVariantTableShowsTheDifference(t *testing.T) {
	of := func(rank int, layer router.OptInt, name string) wait.Variant {
		return wait.Variant{Layer: layer, Phase: "experts", Family: "lib::kernel", Rank: rank, Name: name}
	}
	table := variantTable([]wait.Variant{of(0, 0, "lib::kernel<a, Tile<64>>"), of(1, 0, "lib::kernel<a, Tile<128>>"),
		of(0, 1, "lib::kernel_a"), of(1, 1, "other")})
	last := len(table.Columns) - 1
	for i, want := range []string{"…64>>", "…128>>", "lib::kernel_a", "other"} {
		if have := table.Rows[i][last]; have != want {
			t.Errorf("row %d: have %q, want %q", i, have, want)
		}
	}
}
