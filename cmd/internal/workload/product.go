package workload

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// gonum cuts a product into blocks of 64 × 64 and goes parallel from four of
// them (blas/gonum: blockSize, minParBlock). One row of three blocks stays on
// the goroutine that called.
const (
	tileRows    = 64
	tileColumns = 3 * 64
)

// product is out = x·wᵀ for x of rows × inner, w of columns × inner and out of
// rows × columns, on the calling goroutine alone.
func product(out, x, w []float32, rows, columns, inner int) {
	for i := 0; i < rows; i += tileRows {
		m := min(tileRows, rows-i)
		for j := 0; j < columns; j += tileColumns {
			n := min(tileColumns, columns-j)
			gonum.Implementation{}.Sgemm(blas.NoTrans, blas.Trans, m, n, inner,
				1, x[i*inner:], inner, w[j*inner:], inner, 0, out[i*columns+j:], columns)
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

// normalise writes hidden states of root mean square 1 (RMSNorm, ε = 10⁻⁶).
func normalise(out, in []float32, rows, width int) {
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
