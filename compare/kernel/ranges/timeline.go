package ranges

import (
	"cmp"
	"math"
	"slices"

	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/router"
)

// NoID is the step, layer or expert that no range says.
const NoID = router.NoID

// Location is where in the model a piece of work belongs. The numbers are NoID
// and the phase is empty where no range says.
type Location struct {
	Step     int32        `json:"s"`
	Layer    int32        `json:"l"`
	Expert   int32        `json:"e"`
	Phase    kernel.Phase `json:"p"`
	Inferred Inferred     `json:"i,omitempty"` // which of the numbers no range says
	Graph    bool         `json:"g,omitempty"` // a GEMM that a graph replayed, where layers are inferred
	Operator int8         `json:"-"`           // until kernels' names have been looked at, see OperatorOf
	Module   bool         `json:"-"`           // until kernels' names have been looked at: a module names the phase
}

// Inferred tells which numbers of a location are from the repetition of kernels.
type Inferred uint8

// The numbers that can be inferred.
const (
	InferredLayer Inferred = 1 << iota
	InferredStep
)

// Unattributed is the location that no range says.
var Unattributed = Location{Step: NoID, Layer: NoID, Expert: NoID}

// Range is a range whose name says something.
type Range struct {
	Start, End int64
	Step       int32 // the label's, until steps are numbered
	*Label           // shared by all ranges of the name
}

// Timeline is one thread's labeled ranges and queries.
type Timeline struct {
	Ranges  []Range
	Queries []int32 // of moments, whose locations are asked for
}

// Locate tells each query its location: for each of step, layer, expert and
// phase, what the innermost range open on the thread says about it. Of the
// ranges that contain the query (their ends belong to them) the innermost is
// the one that began last, the shorter one if two began together. Ranges need
// not nest; Number has sorted them. O(n log n) in ranges and queries together.
func (t *Timeline) Locate(moment func(query int32) int64, visit func(query int32, p Location)) {
	slices.SortFunc(t.Queries, func(a, b int32) int { return cmp.Compare(moment(a), moment(b)) })
	var open openRanges
	next, p := 0, new(Location)
	for _, q := range t.Queries {
		at := moment(q)
		for next < len(t.Ranges) && t.Ranges[next].Start <= at {
			open.push(&t.Ranges[next])
			next++
		}
		open.at(at, p)
		visit(q, *p)
	}
}

// said are the things that a label can say: whether it does, and where that goes.
var said = [...]struct {
	says func(m *Range) bool
	take func(p *Location, m *Range)
}{
	{func(m *Range) bool { return m.Step != NoID }, func(p *Location, m *Range) { p.Step = m.Step }},
	{func(m *Range) bool { return m.Layer != NoID }, func(p *Location, m *Range) { p.Layer = m.Layer }},
	{func(m *Range) bool { return m.Expert != NoID }, func(p *Location, m *Range) { p.Expert = m.Expert }},
	{func(m *Range) bool { return m.Phase != "" }, func(p *Location, m *Range) { p.Phase, p.Module = m.Phase, m.Module }},
	{func(m *Range) bool { return m.Operator != 0 }, func(p *Location, m *Range) { p.Operator = m.Operator }},
}

// openRanges holds the open ranges, one stack per thing a label can say, each with
// the latest beginning on top. A range that ended stays below until it surfaces:
// only the top must be alive, and each range is pushed and popped once.
type openRanges [len(said)][]*Range

func (o *openRanges) push(m *Range) {
	for i, of := range said {
		if of.says(m) {
			o[i] = append(o[i], m)
		}
	}
}

// at sets p to what the open ranges say of a moment, once it has dropped the ones that ended before.
func (o *openRanges) at(moment int64, p *Location) {
	*p = Unattributed
	for i, of := range said {
		n := len(o[i])
		for ; n > 0 && o[i][n-1].End < moment; n-- {
		}
		if o[i] = o[i][:n]; n > 0 {
			of.take(p, o[i][n-1])
		}
	}
}

// Number puts ranges in the order of their starts, the longer of two first, and gives the steps among them their
// numbers. Where the hook marks steps of the process, no
// other range does, and an engine's own step within one adds what it says of its batch. A step
// without a number inside another step is part of that one. Where a step has no number,
// or a number comes twice, all are numbered from 0 in the order in which they begin.
func (t *Timeline) Number(hooked bool) {
	slices.SortStableFunc(t.Ranges, func(a, b Range) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
	if hooked {
		t.hookSteps()
	}
	var steps []*Range
	again, end := false, int64(math.MinInt64) // of the steps so far: a number comes twice, the latest end
	seen := map[int32]bool{unnumbered: true}
	for i := range t.Ranges {
		switch m := &t.Ranges[i]; {
		case m.Step == NoID:
		case m.Step == unnumbered && m.End <= end:
			m.Step = NoID
		default:
			again, end, steps = again || seen[m.Step], max(end, m.End), append(steps, m)
			seen[m.Step] = true
		}
	}
	if again {
		for i, m := range steps {
			m.Step = int32(i)
		}
	}
}

// Hooked reports whether the hook marks steps on the thread.
func (t *Timeline) Hooked() bool { return slices.ContainsFunc(t.Ranges, ofHook) }

func ofHook(m Range) bool { return m.Step != NoID && hookStep.MatchString(m.Name) }

// hookSteps leaves the steps of the hook alone. On a stream a profiler shows the engine's ranges
// again, the hook's not.
func (t *Timeline) hookSteps() {
	var hook *Range // the last one that began, until its name says what the engine's own step does
	for i := range t.Ranges {
		m := &t.Ranges[i]
		switch {
		case m.Step == NoID:
		case ofHook(*m):
			hook = m
		default:
			if m.Step = NoID; hook != nil && m.End <= hook.End && BatchOf(m.Name).Named {
				l := *hook.Label
				l.Name += inner + m.Name
				hook.Label, hook = &l, nil
			}
		}
	}
}
