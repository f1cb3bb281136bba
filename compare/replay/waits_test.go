package replay

import "testing"

// Rank 1's clock is 1000 ahead: it arrives 30 later than rank 0, and both leave at 40. A rank that arrives after
// the others left, by its clock, waits no longer than it stays.
func TestStaysByHand(t *testing.T) {
	s := Step{Ranks: [][]Kernel{{{Start: 0, End: 40}, {Start: 50, End: 60}, {Start: 100, End: 110}},
		{{Start: 1030, End: 1040}, {Start: 1090, End: 1095}, {Start: 1105, End: 1110}}}}
	m, alike := s.meet()
	if stays := m.stays; !alike || stays[0] != (Stay{30 + 10 + 5, 10 + 5}) || stays[1] != (Stay{0, 10 + 5 + 5}) {
		t.Errorf("%+v", stays)
	}
}

// Of a rank that arrives within a tenth of the mean wait before the last one, and the last one, the later one is late.
func TestWaitForTheLateOne(t *testing.T) {
	for _, c := range []struct {
		at, late float64
		want     int
	}{{96.7, 5, 1}, {96.3, 5, 2}, {96.7, 0, 2}, {100, 5, 1}} { // they wait 34.4 to 34.6 on average
		m := arrivals{ranks: []int{0, 1, 2}, at: []float64{0, c.at, 100}, last: 100}
		if rank, _ := m.wait([]Wait{{}, {Late: c.late}, {Late: 1}}); rank != c.want {
			t.Errorf("%+v: waited for rank %d", c, rank)
		}
	}
}
