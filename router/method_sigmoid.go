package router

import (
	"math"
	"sync"
)

// sigmoidTable gives σ(x) = 1/(1+e⁻ˣ) as the function sigmoid does, to the bit,
// in less time. It has e⁻ᵃ for the middle a of each of the intervals that
// [-sigmoidLimit, sigmoidLimit) is cut into, and takes x in the interval of a as
//
//	e⁻ˣ = e⁻ᵃ·eᵈ, d = a-x, eᵈ ≈ 1 + d + d²/2 + d³/6 + d⁴/24
//
// Proof: |d| is at most 2⁻⁶, but for a rounding, so what is left out of eᵈ is less
// than d⁵/119, which is less than 2⁻³⁶·⁸ of it. The roundings of the table, the sum,
// the product and the quotient are less than 2⁻⁴⁹ together, fused or not, if
// math.Exp is off by less than three units in the last place, and so are those of
// the function sigmoid. A relative error of e⁻ˣ makes a smaller one of σ(x). So the
// two float64 differ by less than sigmoidSlack of either, and where all numbers that
// close round to one float32, both do. Elsewhere, for one logit in ten thousand, the
// table says that it does not know.
type sigmoidTable [2 * sigmoidLimit * sigmoidUnit]struct{ middle, exp float64 }

const (
	sigmoidLimit = 32
	sigmoidUnit  = 32 // intervals per 1
	sigmoidSlack = 0x1p-36
)

// sigmoids is made by the first router that needs it.
var sigmoids = sync.OnceValue(func() *sigmoidTable {
	t := new(sigmoidTable)
	for i := range t {
		a := (float64(i)+0.5)/sigmoidUnit - sigmoidLimit
		t[i].middle, t[i].exp = a, math.Exp(-a)
	}
	return t
})

// rate sets scores[e] to σ(logits[e]) for each of some experts e. ok is false if
// it does not know one of them, and then the scores are of no use.
//
// There is no call in the loop and no branch that depends on the logits, so that
// the processor works on several experts at once.
func (t *sigmoidTable) rate(scores, logits []float32, experts []int32) (ok bool) {
	scores = scores[:len(logits)]
	ok = true
	for _, e := range experts {
		x := float64(logits[e])
		i := int((x + sigmoidLimit) * sigmoidUnit)
		if i < 1 || i >= len(t) { // the conversion rounds [-1, 0) to 0 as well
			return false
		}
		d := t[i].middle - x
		dd := d * d
		y := 1 / (1 + t[i].exp*(1+d+dd*(1./2+d*(1./6)+dd*(1./24))))
		low, high := float32(y-y*sigmoidSlack), float32(y+y*sigmoidSlack)
		scores[e] = low
		ok = ok && low == high
	}
	return ok
}
