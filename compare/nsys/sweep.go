package nsys

import (
	"cmp"
	"slices"

	"github.com/moebalance/moebalance/compare/nsys/capture"
)

// place is where in the model a piece of work belongs. The numbers are None
// and the phase is empty where no range says.
type place struct {
	Step   int32 `json:"s"`
	Layer  int32 `json:"l"`
	Expert int32 `json:"e"`
	Phase  Phase `json:"p"`
	module bool  // until kernels' names have been looked at: the phase is that of a module
}

var nowhere = place{Step: None, Layer: None, Expert: None}

// mark is a range whose name says something.
type mark struct {
	start, end int64
	label
}

// moment is a point on a thread at which somebody wants to know the place.
type moment struct {
	at     int64
	target int32
}

// timeline is one thread's marks and moments.
type timeline struct {
	marks   []mark
	moments []moment
}

// sortMarks puts marks in the order of their starts, the longer of two first.
func (t *timeline) sortMarks() {
	slices.SortStableFunc(t.marks, func(a, b mark) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
}

// locate tells each moment its place: for each of step, layer, expert and
// phase, what the innermost range open on the thread says about it. Of the
// ranges that contain the moment (their ends belong to them) the innermost is
// the one that began last, the shorter one if two began together. Ranges need
// not nest; they are sorted already. O(n log n) in marks and moments together.
func (t *timeline) locate(visit func(target int32, p place)) {
	if byTime := func(a, b moment) int { return cmp.Compare(a.at, b.at) }; !slices.IsSortedFunc(t.moments, byTime) {
		slices.SortStableFunc(t.moments, byTime)
	}
	var open stacks
	next := 0
	for _, m := range t.moments {
		for next < len(t.marks) && t.marks[next].start <= m.at {
			open.push(&t.marks[next])
			next++
		}
		open.drop(m.at)
		visit(m.target, open.place())
	}
}

// stacks holds the open marks, one stack per thing a mark can say, each with
// the latest beginning on top. A mark that ended stays below until it surfaces:
// only the top must be alive, and each mark is pushed and popped once.
type stacks struct {
	step, layer, expert, phase []*mark
}

func (s *stacks) push(m *mark) {
	if m.step != None {
		s.step = append(s.step, m)
	}
	if m.layer != None {
		s.layer = append(s.layer, m)
	}
	if m.expert != None {
		s.expert = append(s.expert, m)
	}
	if m.phase != "" {
		s.phase = append(s.phase, m)
	}
}

func (s *stacks) drop(at int64) {
	for _, stack := range []*[]*mark{&s.step, &s.layer, &s.expert, &s.phase} {
		for n := len(*stack); n > 0 && (*stack)[n-1].end < at; n-- {
			*stack = (*stack)[:n-1]
		}
	}
}

func (s *stacks) place() place {
	p := nowhere
	if m := top(s.step); m != nil {
		p.Step = m.step
	}
	if m := top(s.layer); m != nil {
		p.Layer = m.layer
	}
	if m := top(s.expert); m != nil {
		p.Expert = m.expert
	}
	if m := top(s.phase); m != nil {
		p.Phase, p.module = m.phase, m.module
	}
	return p
}

func top(stack []*mark) *mark {
	if len(stack) == 0 {
		return nil
	}
	return stack[len(stack)-1]
}

// numberSteps gives the steps of one thread their numbers. A step without a
// number inside another step is part of that one. Where a step has no number,
// or a number comes twice, all are numbered from 0 in the order in which they
// begin; numberSteps then reports true.
func (t *timeline) numberSteps() (renumbered bool) {
	var steps []*mark
	end := int64(-capture.TimeLimit) - 1 // of the steps so far
	seen := map[int32]bool{}
	for i := range t.marks {
		m := &t.marks[i]
		switch {
		case m.step == None:
			continue
		case m.step == unnumbered && m.end <= end:
			m.step = None
			continue
		case m.step == unnumbered || seen[m.step]:
			renumbered = true
		}
		seen[m.step] = true
		end = max(end, m.end)
		steps = append(steps, m)
	}
	if renumbered {
		for i, m := range steps {
			m.step = int32(i)
		}
	}
	return renumbered
}
