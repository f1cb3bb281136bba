package wait

import (
	"math"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// In a step of 1000 ns, waiting for late launches leads above 100 ns, or above 10 where experts
// are uneven, and only if it is more than their loss.
func TestLeads(t *testing.T) {
	for _, c := range []struct {
		cause          string
		ns, wait, loss router.Number
		uneven, want   bool
	}{
		{LateHosts, 101, 150, 0, false, true},
		{LateHosts, 100, 150, 0, false, false},
		{LateHosts, 150, 100, 0, false, false}, // made up for by less of something else
		{LateHosts, 11, 15, 5, true, true},
		{LateHosts, 11, 15, 5, false, false},
		{LateHosts, 10, 15, 5, true, false},
		{LateHosts, 150, 200, 151, true, false},
		{ExpertTime, 500, 500, 0, true, false},
		{LateHosts, router.Number(math.NaN()), 500, 0, true, false},
	} {
		w := Waiting{WaitNS: c.wait, Cause: Cause{Name: c.cause, NS: c.ns}}
		if have := w.Leads(c.loss, 1000, c.uneven); have != c.want {
			t.Errorf("%+v: %t", c, have)
		}
	}
}

// More than half of 4 × 100 ns: 201 do, 200 do not.
func TestFewLate(t *testing.T) {
	for _, c := range []struct {
		late  []LateStep
		steps int
		same  bool
	}{
		{[]LateStep{{Rank: 1, WaitNS: 201}}, 1, true},
		{[]LateStep{{Rank: 1, WaitNS: 200}}, 0, false},
		{[]LateStep{{Rank: 1, WaitNS: 150}, {Rank: 2, WaitNS: 90}}, 2, false},
		{nil, 0, false},
	} {
		w := Waiting{Steps: 4, WaitNS: 100, Late: c.late}
		if steps, same := w.FewLate(); steps != c.steps || same != c.same {
			t.Errorf("%+v: %d, %t", c.late, steps, same)
		}
	}
}
