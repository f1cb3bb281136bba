package page

import (
	"fmt"
	"slices"

	"github.com/moebalance/moebalance/compare/answer"
)

// chip is one label of evidence: all caveats of a code and weight, which open as sentences.
type chip struct {
	Label    string
	Severity answer.Severity
	Texts    []string
}

// Chips are the caveats of the answer by code, in their order.
func (p program) Chips() (out []chip) {
	var codes []string
	for _, c := range p.Answer.Caveats {
		key := string(c.Severity) + " " + c.Code
		at := slices.Index(codes, key)
		if at < 0 {
			at, codes = len(codes), append(codes, key)
			out = append(out, chip{Label: signs[c.Severity] + c.Label(), Severity: c.Severity})
		}
		out[at].Texts = append(out[at].Texts, c.String())
	}
	for i, c := range out {
		if n := len(c.Texts); n > 1 {
			out[i].Label += fmt.Sprintf(" (%d)", n)
		}
	}
	return out
}

// signs say how much a caveat weighs.
var signs = map[answer.Severity]string{answer.Unknown: "? ", answer.Doubt: "✗ ", answer.Warn: "▲ ", answer.Note: "○ "}
