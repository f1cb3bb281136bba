package plots

import (
	"fmt"
	"slices"
	"strings"
)

// Grid is a table of values that are not negative, such as nanoseconds or slots
// by layer and expert. NaN means that nothing is known about a cell, which is
// not zero.
type Grid struct {
	Name    string      // of the panel: the arm
	Rows    []int       // the number of each row, such as layers 3, 4, 5
	Columns []int       // the number of each column, such as experts 0…255
	Values  [][]float64 // [row][column]
	Cuts    []int       // column positions, above 0, at which another rank begins; nil if unknown
}

// unknownGrid is a grid of which nothing is known yet.
func unknownGrid(name string, rows, columns []int) Grid {
	g := Grid{Name: name, Rows: rows, Columns: columns}
	for range rows {
		g.Values = append(g.Values, unknowns(len(columns)))
	}
	return g
}

// RelativeToRow divides every value by the mean of its row's known values, so
// that 1 is an even share whatever the layer. A row whose known values are all
// zero has no even share and becomes unknown.
func (g Grid) RelativeToRow() [][]float64 {
	out := make([][]float64, len(g.Values))
	for i, row := range g.Values {
		even := mean(row)
		out[i] = make([]float64, len(row))
		for j, v := range row {
			out[i][j] = nan
			if known(v) && even > 0 {
				out[i][j] = v / even
			}
		}
	}
	return out
}

// empty reports a grid without any known value.
func (g Grid) empty() bool { return len(knowns(slices.Concat(g.Values...))) == 0 }

// answer says in words where each grid is largest relative to its row.
func (s HeatSpec) answer() string {
	var answers []string
	for _, g := range s.Grids {
		answers = append(answers, g.extreme(s.RowLabel, s.ColumnLabel))
	}
	return strings.Join(answers, " ")
}

// extreme says in words where the grid is largest relative to its row.
func (g Grid) extreme(row, column string) string {
	most, r, c := 0.0, -1, -1
	for i, cells := range g.RelativeToRow() {
		for j, v := range cells {
			if known(v) && v > most {
				most, r, c = v, i, j
			}
		}
	}
	switch {
	case r < 0:
		return fmt.Sprintf("%s: nothing recorded.", g.Name)
	case isEven(most):
		return fmt.Sprintf("%s: on average even in every %s.", g.Name, row)
	}
	return fmt.Sprintf("%s: the largest is %.2f × its %s's mean (%s %d, %s %d).", g.Name, most, row, row, g.Rows[r], column, g.Columns[c])
}
