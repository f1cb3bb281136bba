package replay

import "testing"

// Rank 1's clock is 1000 ahead: it arrives 30 later than rank 0, and both leave at 40. A rank that arrives after
// the others left, by its clock, waits no longer than it stays.
func TestStaysByHand(t *testing.T) {
	s := Step{Ranks: [][]Kernel{{{Start: 0, End: 40}, {Start: 50, End: 60}}, {{Start: 1030, End: 1040}, {Start: 1090, End: 1095}}}}
	stays := s.stays([][]int{{0, 1}, {0, 1}}, []int64{0, -1000}, 2)
	if stays[0] != (Stay{30 + 10, 10}) || stays[1] != (Stay{0, 10 + 5}) {
		t.Errorf("%+v", stays)
	}
}
