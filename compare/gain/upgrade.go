package gain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// Upgrade turns a result without comparisons, as version 1 wrote it, into one of today, by the text that it was read
// from: its gain is the comparison, its proofs only said whether they prove, and its word for a gain below the
// threshold was another one. The first checks of version 5 had lists of subjects.
func (r *Result) Upgrade(text []byte) error {
	var old struct {
		Proof  []struct{ Proved bool }
		Checks []struct{ Subjects []string }
	}
	if err := json.Unmarshal(text, &old); err != nil {
		return err
	}
	for i, c := range old.Checks {
		r.Checks[i].Subject = cmp.Or(r.Checks[i].Subject, strings.Join(c.Subjects, ", "))
	}
	switch {
	case r.SchemaVersion >= SchemaVersion:
		return nil
	case r.SchemaVersion > 1:
		return fmt.Errorf("schema_version %d is not read: write it again from its campaign, with 'moebalance bench "+
			"--resume DIR --format json'", r.SchemaVersion)
	}
	if r.SchemaVersion = SchemaVersion; r.Verdict == "not significant" {
		r.Verdict = NotSignificant
	}
	r.Comparisons = []Comparison{{Arm: Perfect, Leads: true, Gain: r.Gain, Verdict: r.Verdict}}
	for i, p := range old.Proof {
		grades := map[bool]Grade{false: Claimed, true: Measured}
		if r.Proof[i].Grade = None; p.Proved {
			r.Proof[i].Grade = grades[strings.Contains(r.Proof[i].Evidence, "worst layer")]
		}
	}
	r.Balance, _ = (&Recorded{Proof: r.Proof}).checkProof()
	return nil
}
