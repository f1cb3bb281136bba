package diff

import (
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/nsys"
)

// The deepseek capture ran its grouped GEMM in two variants in the normal arm, 48 and 16
// instances, and in one of them, 64, in the perfect arm: 17,817,051 of 328,560,761 ns
// (SQL over the four exports) are of the other.
func TestTactics(t *testing.T) {
	normal, perfect := captured(t, "deepseek-ep4-ranks", "normal"), captured(t, "deepseek-ep4-ranks", "perfect")
	c := CheckTactics(normal, perfect)
	if c.Status != gain.Warn || !strings.Contains(words(c), "1 variant of ") ||
		!strings.Contains(words(c), "(5.4 % of the kernel time of the normal arm)") {
		t.Errorf("%+v", c)
	}
	if c := CheckTactics(normal, normal); c.Status != gain.Pass {
		t.Errorf("of one arm: %+v", c)
	}
	// Variants below one per cent of the time decide nothing.
	own := func(ns int64) *nsys.Trace {
		t := nsys.Trace{Coverage: nsys.Coverage{GPUNS: 1000}}
		for name, total := range map[string]int64{"nvjet_tst_64x8_v": 1000 - ns, "nvjet_tst_128x8_v": ns} {
			t.Kernels = append(t.Kernels, nsys.KernelStat{Name: name, Stats: kernel.Stats{TotalNS: total}})
		}
		return &t
	}
	one := &nsys.Trace{Coverage: nsys.Coverage{GPUNS: 1000},
		Kernels: []nsys.KernelStat{{Name: "nvjet_tst_64x8_v", Stats: kernel.Stats{TotalNS: 1000}}}}
	if low, high := CheckTactics(own(9), one), CheckTactics(one, own(10)); low.Status != gain.Pass ||
		high.Status != gain.Warn || !strings.Contains(words(high), "1.0 % of the kernel time of the perfect arm") {
		t.Errorf("%+v, %+v", low, high)
	}
}
