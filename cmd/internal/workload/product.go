package workload

import (
	"math"

	"gonum.org/v1/gonum/blas/gonum"
)

// product is out = x·wᵀ for x of rows × inner, w of columns × inner and out of
// rows × columns, on the calling goroutine alone: gonum's own goes parallel.
func product(out, x, w []float32, rows, columns, inner int) {
	for j := range columns {
		for i := range rows {
			out[i*columns+j] = gonum.Implementation{}.Sdot(inner, x[i*inner:], 1, w[j*inner:], 1)
		}
	}
}

// forward runs an expert over rows of x into out, both rows × H. up and gate are
// scratch of at least rows × I.
func (x weights) forward(out, in, up, gate []float32, rows, hidden, intermediate int) {
	product(up, in, x.up, rows, intermediate, hidden)
	inner := up[:rows*intermediate]
	product(gate, in, x.gate, rows, intermediate, hidden)
	for i, g := range gate[:len(inner)] {
		inner[i] *= g / (1 + float32(math.Exp(float64(-g))))
	}
	product(out, inner, x.down, rows, hidden, intermediate)
}

// normalize writes hidden states of root mean square 1 (RMSNorm, ε = 10⁻⁶).
func normalize(out, in []float32, rows, width int) {
	for r := range rows {
		row := in[r*width : (r+1)*width]
		var squares float32
		for _, v := range row {
			squares += v * v
		}
		scale := 1 / float32(math.Sqrt(float64(squares/float32(width)+1e-6)))
		for i, v := range row {
			out[r*width+i] = v * scale
		}
	}
}
