package gain

import (
	"encoding/json"
	"strings"
)

// before is what results held before version 5 in place of comparisons.
type before struct {
	Arms []struct {
		Name Arm `json:"name"`
		Comparison
	}
	Points []Comparison
	Dose   *Dose
	Proof  []struct{ Proved bool } // version 1 knew no grades
}

// Upgrade turns a result of an older version into one of today, by the text that it was read from: its comparisons,
// its word for a gain below the threshold, the grades of its proofs, and a verdict of fewer launches than one takes.
func (r *Result) Upgrade(text []byte) error {
	var old before
	if r.SchemaVersion >= SchemaVersion {
		return nil
	}
	if err := json.Unmarshal(text, &old); err != nil {
		return err
	}
	if len(old.Arms) == 2 {
		r.Builds = Builds{old.Arms[0].Name, old.Arms[1].Name}
	}
	if r.Points = old.Points; len(r.Points) == 0 {
		r.Comparisons = []Comparison{{Gain: r.Gain, Verdict: r.Verdict, Dose: old.Dose}}
	}
	r.Comparisons = append(r.Comparisons, r.Points...)
	lead := 0
	for i := range r.Comparisons {
		one := &r.Comparisons[i]
		if one.Arm, one.Share = r.Builds.Called(Perfect), nil; one.Gain == r.Gain { // the share was a further arm's
			lead = i
		}
	}
	for i, a := range old.Arms {
		if i > 0 && i < len(old.Arms)-1 {
			a.Arm, a.Value = a.Name, r.Comparisons[lead].Value
			r.Comparisons = append(r.Comparisons, a.Comparison)
		}
	}
	for i := range r.Comparisons {
		r.Comparisons[i].Leads = i == lead || i >= max(1, len(r.Points))
		r.today(&r.Comparisons[i].Verdict, r.Comparisons[i].Gain.N)
	}
	copy(r.Points, r.Comparisons)
	if r.today(&r.Verdict, r.Gain.N); r.Design == WithinLaunch {
		for i := range min(len(r.Launches), len(r.Pairs)) {
			r.Launches[i].Pair, r.Launches[i].Values = r.Pairs[i].Pair, r.Pairs[i].Values
		}
		r.Pairs = []Unit{}
	}
	if r.Balance == "" {
		r.grade(old)
	}
	r.SchemaVersion = SchemaVersion
	return nil
}

// grade grades proofs that only say whether they prove: a load of the worst layer was measured, all else claimed.
func (r *Result) grade(old before) {
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
	r.Balance = (&Campaign{Proof: r.Proof}).balance()
}

// today is a verdict in today's words and of today's number of launches.
func (r *Result) today(v *Verdict, n int) {
	switch {
	case *v == "":
	case r.Design == WithinLaunch && n < MinLaunches && !v.Refused():
		*v = NoVerdict
	case *v == "not significant":
		*v = NotSignificant
	}
}
