package gain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/router"
)

// Arm is one of the things compared, by its name in tables, flags and JSON.
type Arm string

// The arms that differ in routing alone; all others are builds, and further arms.
const (
	Normal    Arm = "normal"  // the learned router
	Perfect   Arm = "perfect" // balanced routing
	ChanceArm Arm = "chance"  // what Perfect is called where it routes at random
)

// labels are what sentences and figures call the arms.
var labels = map[Arm]string{Normal: "learned routing", Perfect: "balanced routing", ChanceArm: "random routing"}

// Label is what sentences and figures call an arm: builds by their names.
func (a Arm) Label() string { return cmp.Or(labels[a], string(a)) }

// Arms lists both, in the order reports show them.
var Arms = [2]Arm{Normal, Perfect}

// Builds name two arms that stand in the places of Normal and Perfect and differ in
// something else than balance: no proof is wanted, and no result speaks of it. The zero value
// names none.
type Builds [2]Arm

// NewBuilds are two builds by their names, or none.
func NewBuilds(names []string) (b Builds, err error) {
	if n := len(names); n > 0 && (n != 2 || names[0] == "" || names[1] == "" || names[0] == names[1]) {
		return b, fmt.Errorf("want two names, such as before and after, have %q", names)
	}
	copy(b[:], mapped(names, func(name string) Arm { return Arm(name) }))
	return b, nil
}

// Named reports whether there are any.
func (b Builds) Named() bool { return b[0] != "" }

// Names are the names of both arms.
func (b Builds) Names() [2]Arm { return cmp.Or([2]Arm(b), Arms) }

// Called is the name of an arm for people.
func (b Builds) Called(a Arm) Arm {
	if i := slices.Index(Arms[:], a); i >= 0 {
		return b.Names()[i]
	}
	return a
}

// Metric is a number that launches report. Unit is as printed, such as "tok/s".
type Metric struct {
	Name           string `json:"name"`
	Unit           string `json:"unit"`
	HigherIsBetter bool   `json:"higher_is_better"`
	// Definition is the formula, in the words of the program that reported the
	// number: launches with different definitions measured different things.
	Definition string `json:"definition"`
}

// stepNS is the time of one step in nanoseconds that a launch's value says: of a
// metric of step time in ms, or of tokens per second where all ranks together process
// so many tokens in a step. Undefined for other metrics, and for no tokens.
func (m Metric) stepNS(value, tokens float64) router.Number {
	switch {
	case value > 0 && m.Unit == "ms" && strings.HasPrefix(m.Name, "step_time"):
		return router.Number(1e6 * value)
	case value > 0 && tokens > 0 && slices.Contains([]string{"tok/s", "tokens/s"}, m.Unit):
		return router.Number(1e9 * tokens / value)
	}
	return router.Undefined()
}

// Swapped begins the evidence against sides that were given in the wrong order.
const Swapped = "the sides are swapped"

// BalancedToo begins the evidence against a normal arm whose routing was balanced.
const BalancedToo = "ran balanced, too"

// Proof is the evidence that one rank ran its arm in every counted launch:
// balanced routing in the perfect arm, and not in the normal one.
type Proof struct {
	Arm      Arm           `json:"arm"`
	Rank     router.OptInt `json:"rank"` // AllRanks where the evidence covers all together, or names none
	Grade    Grade         `json:"grade"`
	Evidence string        `json:"evidence"`         // one line: what was seen, or what was missing
	Proved   bool          `json:"proved,omitempty"` // in place of the grade in results of version 1
}

// Grade says how good the evidence for a rank is.
type Grade string

// The grades, best first.
const (
	Measured Grade = "measured" // recorded loads or traces show the routing
	Claimed  Grade = "claimed"  // the engine says that the switch is on, or off
	None     Grade = "none"     // nothing shows it, or something shows the opposite
)

// AllRanks is the rank of evidence that covers all ranks of an arm together.
const AllRanks = router.NoID
