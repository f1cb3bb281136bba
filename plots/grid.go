package plots

import "math"

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
		mean := meanKnown(row)
		out[i] = make([]float64, len(row))
		for j, v := range row {
			out[i][j] = math.NaN()
			if known(v) && mean > 0 {
				out[i][j] = v / mean
			}
		}
	}
	return out
}

// empty reports a grid without any known value.
func (g Grid) empty() bool {
	for _, row := range g.Values {
		for _, v := range row {
			if known(v) {
				return false
			}
		}
	}
	return true
}
