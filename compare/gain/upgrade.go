package gain

import (
	"encoding/json"
	"strings"
)

// Upgrade turns a result without comparisons, as version 1 wrote it, into one of today, by the text that it was read
// from: its gain is the comparison, its proofs only said whether they prove, and its word for a gain below the
// threshold was another one.
func (r *Result) Upgrade(text []byte) error {
	var old struct{ Proof []struct{ Proved bool } }
	if err := json.Unmarshal(text, &old); err != nil || r.SchemaVersion > 1 {
		return err
	}
	if r.SchemaVersion = SchemaVersion; r.Verdict == "not significant" {
		r.Verdict = NotSignificant
	}
	r.Comparisons = []Comparison{{Arm: Perfect, Leads: true, Gain: r.Gain, Verdict: r.Verdict}}
	for i, p := range old.Proof {
		switch {
		case !p.Proved:
			r.Proof[i].Grade = None
		case strings.Contains(r.Proof[i].Evidence, "worst layer"):
			r.Proof[i].Grade = Measured
		default:
			r.Proof[i].Grade = Claimed
		}
	}
	r.Balance = (&Recorded{Proof: r.Proof}).balance()
	return nil
}
