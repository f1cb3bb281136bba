package nsys

import (
	"cmp"
	"slices"

	"github.com/moebalance/moebalance/compare/nsys/capture"
)

// location is where in the model a piece of work belongs. The numbers are None
// and the phase is empty where no range says.
type location struct {
	Step   int32 `json:"s"`
	Layer  int32 `json:"l"`
	Expert int32 `json:"e"`
	Phase  Phase `json:"p"`
	// What placed the work in the phase, and which of the numbers no range says.
	Evidence evidence `json:"v,omitempty"`
	Inferred inferred `json:"i,omitempty"`
	Graph    bool     `json:"g,omitempty"` // a GEMM that a graph replayed, where layers are inferred
	operator int8     // until kernels' names have been looked at, see operatorOf
	module   bool     // until kernels' names have been looked at: the phase is that of a module
}

// inferred tells which numbers of a location are from the repetition of kernels.
type inferred uint8

const (
	inferredLayer inferred = 1 << iota
	inferredStep
)

var unattributed = location{Step: None, Layer: None, Expert: None}

// labeledRange is a range whose name says something.
type labeledRange struct {
	start, end int64
	step       int32 // the label's, until steps are numbered
	*label           // shared by all ranges of the name
}

// timeline is one thread's labeled ranges and queries.
type timeline struct {
	ranges  []labeledRange
	queries []int32 // of moments, whose locations are asked for
}

// sortRanges puts ranges in the order of their starts, the longer of two first.
func (t *timeline) sortRanges() {
	slices.SortStableFunc(t.ranges, func(a, b labeledRange) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
}

// locate tells each query its location: for each of step, layer, expert and
// phase, what the innermost range open on the thread says about it. Of the
// ranges that contain the query (their ends belong to them) the innermost is
// the one that began last, the shorter one if two began together. Ranges need
// not nest; they are sorted already. O(n log n) in ranges and queries together.
func (t *timeline) locate(moment func(query int32) int64, visit func(query int32, p location)) {
	if byTime := func(a, b int32) int { return cmp.Compare(moment(a), moment(b)) }; !slices.IsSortedFunc(t.queries,
		byTime) {
		slices.SortStableFunc(t.queries, byTime)
	}
	var open openRanges
	next := 0
	for _, q := range t.queries {
		at := moment(q)
		for next < len(t.ranges) && t.ranges[next].start <= at {
			open.push(&t.ranges[next])
			next++
		}
		open.drop(at)
		visit(q, open.location())
	}
}

// openRanges holds the open ranges, one stack per thing a label can say, each with
// the latest beginning on top. A range that ended stays below until it surfaces:
// only the top must be alive, and each range is pushed and popped once.
type openRanges struct {
	step, layer, expert, phase, operator []*labeledRange
}

func (s *openRanges) push(m *labeledRange) {
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
	if m.operator != 0 {
		s.operator = append(s.operator, m)
	}
}

func (s *openRanges) drop(at int64) {
	for _, stack := range []*[]*labeledRange{&s.step, &s.layer, &s.expert, &s.phase, &s.operator} {
		for n := len(*stack); n > 0 && (*stack)[n-1].end < at; n-- {
			*stack = (*stack)[:n-1]
		}
	}
}

func (s *openRanges) location() location {
	p := unattributed
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
		p.Phase, p.module, p.Evidence = m.phase, m.module, m.evidence
	}
	if m := top(s.operator); m != nil {
		p.operator = m.operator
	}
	return p
}

func top(stack []*labeledRange) *labeledRange {
	if len(stack) == 0 {
		return nil
	}
	return stack[len(stack)-1]
}

// numberSteps gives the steps of one thread their numbers. A step without a
// number inside another step is part of that one. Where a step has no number,
// or a number comes twice, all are numbered from 0 in the order in which they
// begin; numberSteps reports whether numbers of ranges were replaced so.
func (t *timeline) numberSteps() (replaced bool) {
	renumbered := false
	var steps []*labeledRange
	end := int64(-capture.TimeLimit) - 1 // of the steps so far
	seen := map[int32]bool{}
	for i := range t.ranges {
		m := &t.ranges[i]
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
	delete(seen, unnumbered)
	return renumbered && len(seen) > 0
}
