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
