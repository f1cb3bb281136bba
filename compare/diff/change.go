package diff

import "github.com/moebalance/moebalance/router"

// Change is a time in both arms, in nanoseconds per step. Without a step on
// one side the numbers that need it are undefined.
type Change struct {
	NormalNS  router.Number `json:"normal_ns"`  // mean over steps of the mean over ranks
	PerfectNS router.Number `json:"perfect_ns"` // likewise
	// DifferenceNS is perfect − normal: negative where perfect routing is faster.
	DifferenceNS router.Number `json:"difference_ns"`
	Ratio        router.Number `json:"ratio"` // normal / perfect; undefined where perfect has no time
}

// OfNormal is the difference as a share of normal, undefined where that has no time.
func (c Change) OfNormal() router.Number {
	if c.NormalNS > 0 {
		return c.DifferenceNS / c.NormalNS
	}
	return router.Undefined()
}

// changeOf compares two series of per-step times.
func changeOf(normal, perfect []float64) Change {
	n, p := average(normal), average(perfect)
	c := Change{NormalNS: n, PerfectNS: p, DifferenceNS: p - n, Ratio: router.Undefined()}
	if p > 0 {
		c.Ratio = n / p
	}
	return c
}

// nothing reports whether neither arm has any time here.
func (c Change) nothing() bool {
	return !(c.NormalNS > 0) && !(c.PerfectNS > 0)
}
