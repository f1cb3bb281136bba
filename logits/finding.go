package logits

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router"
)

// Status says how far an entry's logits carry the plan through the gate.
type Status string

const (
	// Exact: the router picks the planned experts of every token.
	Exact Status = "exact"
	// Projected: for some tokens the gate's correction bias outweighs the
	// logits. The entry holds what the router picks instead.
	Projected Status = "projected"
	// Infeasible: Projected, and no logits whatever could have done better,
	// because an expert's bias lies below another's by 1 or more, which is all
	// that a sigmoid can add.
	Infeasible Status = "infeasible"
)

// Worse is the worse of two statuses.
func (s Status) Worse(other Status) Status {
	order := []Status{Exact, Projected, Infeasible}
	return order[max(slices.Index(order, s), slices.Index(order, other))]
}

// Finding is what was found out about an entry when it was written.
type Finding struct {
	Status Status
	Moved  int // tokens whose experts are not the planned ones
	// Impossible are the planned experts that no logits can bring to be chosen,
	// in ascending order.
	Impossible []int32
	// Margin is the largest spread of a correction bias that the logits
	// survive; +Inf for methods that add none.
	Margin float64
}

// note adds the finding to an entry's metadata.
func (f Finding) note(meta map[string]string) {
	meta[keyStatus] = string(f.Status)
	meta[keyMoved] = strconv.Itoa(f.Moved)
	meta[keyMargin] = "any"
	if !math.IsInf(f.Margin, 1) {
		meta[keyMargin] = strconv.FormatFloat(f.Margin, 'g', -1, 64)
	}
	experts := make([]string, len(f.Impossible))
	for i, e := range f.Impossible {
		experts[i] = strconv.Itoa(int(e))
	}
	meta[keyImpossible] = strings.Join(experts, ",")
}

// finding reads back what note wrote.
func (m *metadata) finding() Finding {
	f := Finding{Status: Status(m.values[keyStatus]), Moved: m.integer(keyMoved), Margin: math.Inf(1)}
	if !slices.Contains([]Status{Exact, Projected, Infeasible}, f.Status) {
		m.fail(keyStatus, fmt.Sprintf("%s, %s or %s", Exact, Projected, Infeasible))
	}
	if text := m.values[keyMargin]; text != "any" {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || !(x >= 0) {
			m.fail(keyMargin, "a number or any")
		}
		f.Margin = x
	}
	for text := range strings.SplitSeq(m.values[keyImpossible], ",") {
		if text == "" {
			continue
		}
		e, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			m.fail(keyImpossible, "expert numbers")
		}
		f.Impossible = append(f.Impossible, int32(e))
	}
	return f
}

// unreachable lists the experts of a planned row that no logits can get chosen:
// a sigmoid adds at most 1, which leaves them at or below an expert that the
// plan leaves out even at 0, in a group that the plan needs. Equal scores go to
// the lower index.
func unreachable(row []int32, g router.Gate) []int32 {
	if g.Method == router.DeepSeekV4 || len(g.Bias) == 0 {
		return nil
	}
	size := int32(g.Shape.GroupSize())
	rival := int32(-1) // the strongest expert left out of the groups in use
	for e, b := range g.Bias {
		e := int32(e)
		used := slices.ContainsFunc(row, func(c int32) bool { return c/size == e/size })
		if used && !slices.Contains(row, e) && (rival < 0 || b > g.Bias[rival]) {
			rival = e
		}
	}
	if rival < 0 {
		return nil
	}
	var lost []int32
	for _, e := range row {
		most, least := 1+g.Bias[e], g.Bias[rival]
		if most < least || (most == least && rival < e) {
			lost = append(lost, e)
		}
	}
	return lost
}
