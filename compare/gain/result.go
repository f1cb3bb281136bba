package gain

import (
	"fmt"
	"slices"
	"time"

	"github.com/moebalance/moebalance/router"
)

// Result is the result of the bench verb.
type Result struct {
	SchemaVersion int     `json:"schema_version"`
	Kind          string  `json:"kind"` // always "bench"
	Command       string  `json:"command"`
	Design        Design  `json:"design"`
	Metric        Metric  `json:"metric"`
	Threshold     float64 `json:"threshold"` // fraction
	// Balance is the grade of the weakest proof: None unless every rank of both arms
	// is proved. Chance says that the perfect arm routes at random.
	Balance Grade `json:"balance"`
	Chance  bool  `json:"chance,omitempty"`
	// Arms are all arms of a campaign with further ones, or of two builds; Share is how
	// much of the ceiling the first further one recovers.
	Arms  []ArmGain `json:"arms,omitempty"`
	Share *Share    `json:"share_of_ceiling,omitempty"`
	Dose  *Dose     `json:"dose,omitempty"`
	// Points are the gains at each load. Gain is then the gain at the point whose interval
	// begins highest, and all intervals hold together at SimultaneousConfidence.
	Points                 []PointGain `json:"points,omitempty"`
	SimultaneousConfidence float64     `json:"simultaneous_confidence,omitempty"`

	// Launches are those that hold all arms, with their blocks: see WithinLaunch.
	Launches []LaunchGain `json:"launches,omitempty"`
	// Pairs are by pair. A launch that holds all arms is one, with the geometric means of
	// the segments of its complete blocks.
	Pairs   []Pair  `json:"pairs"`
	Gain    Gain    `json:"gain"`
	Verdict Verdict `json:"verdict"`
	// Outliers are the launches far from the others of their arm, by position: their pairs are left out
	// where enough remain. Of launches that hold all arms they are named only.
	Outliers []Outlier `json:"outliers,omitempty"`
	// PairsNeeded is how many pairs in all would decide an inconclusive campaign. Of
	// several points it is of the point that needs most: undefined where one is
	// inconclusive and no number of pairs is known that would decide it.
	PairsNeeded router.Number   `json:"pairs_needed"`
	Secondary   []SecondaryGain `json:"secondary"` // by name
	Proof       []Proof         `json:"proof"`     // by arm and rank
	Differences []Difference    `json:"differences"`
	Checks      []Check         `json:"checks"`
}

// ArmGain is one arm of a campaign with further ones, against the first.
type ArmGain struct {
	Name    Arm     `json:"name"`
	Gain    Gain    `json:"gain"` // over the first arm; undefined of that itself
	Verdict Verdict `json:"verdict,omitempty"`
	Share   *Share  `json:"share_of_ceiling,omitempty"`
}

// Share is how much of the gain of perfect routing an arm recovers,
//
//	ln(arm/normal) / ln(perfect/normal)
//
// 1 is all of it; below 0 the arm is slower than the normal one, above 1 faster than
// the perfect one. Low and High are Fieller's interval. All are undefined where the
// interval of the ceiling is not above zero.
type Share struct {
	Arm        Arm           `json:"arm"`
	Estimate   router.Number `json:"estimate"`
	Low        router.Number `json:"low"`
	High       router.Number `json:"high"`
	Confidence router.Number `json:"confidence"`
}

// Failed are the failed checks.
func (r Result) Failed() []Check { return r.with(Fail) }

// Leading are the checks that a reader has to know of before the gain.
func (r Result) Leading() []Check {
	return slices.DeleteFunc(r.with(Warn), func(c Check) bool { return !c.leads() })
}

func (r Result) with(status CheckStatus) (checks []Check) {
	for _, c := range r.Checks {
		if c.Status == status {
			checks = append(checks, c)
		}
	}
	return checks
}

// Called is the name of an arm for people: random routing is not called perfect, and
// builds have names of their own.
func (r Result) Called(a Arm) Arm {
	if a == Perfect && r.Chance {
		return ChanceArm
	}
	if len(r.Arms) == 2 {
		return Builds{r.Arms[0].Name, r.Arms[1].Name}.Called(a)
	}
	return a
}

// Run is the design of a campaign and its progress.
type Run struct {
	Folder    string `json:"folder"`
	Treatment string `json:"treatment"`        // by name
	Server    bool   `json:"server,omitempty"` // launches start one, and measure it by a client
	// Again is what is measured, as bench takes it behind the design; empty where that is not known.
	Again    string    `json:"again,omitempty"`
	Seed     uint64    `json:"seed"`
	Pairs    int       `json:"pairs"`           // of the design
	Launches int       `json:"launches"`        // finished
	Left     int       `json:"left"`            // still to be launched
	Ranks    int       `json:"ranks,omitempty"` // 0: unknown
	Created  time.Time `json:"created,omitzero"`
	GPUs     string    `json:"gpus,omitempty"` // of the last launch that saw some, such as "4 × NVIDIA H200"
}

// Upgrade turns a result of an older version into one of today: its checks by point and arm, its word for a gain
// below the threshold, and a verdict of fewer launches than one takes today.
func (r *Result) Upgrade() {
	var checks []Check
	for _, c := range r.Checks {
		if leaves := c.leaves(""); len(c.Parts) > 0 {
			checks = append(checks, merged(leaves, len(leaves))...)
		} else {
			checks = append(checks, c)
		}
	}
	r.Checks = checks
	if r.SchemaVersion >= SchemaVersion {
		return
	}
	r.SchemaVersion = SchemaVersion
	today := func(v *Verdict, n int) {
		switch {
		case *v == "":
		case r.Design == WithinLaunch && n < decidingLaunches && !v.Refused():
			*v = NoVerdict
		case *v == "not significant":
			*v = NotSignificant
		}
	}
	today(&r.Verdict, r.Gain.N)
	for i := range r.Points {
		today(&r.Points[i].Verdict, r.Points[i].Gain.N)
	}
	for i := range r.Arms {
		today(&r.Arms[i].Verdict, r.Arms[i].Gain.N)
	}
}

// leaves are the answers of a check of an older version at each point and of each arm, which its Parts hold.
//
//	equal_work with parts "tokens 64", "tokens 8192" → equal_work of "tokens 64", equal_work of "tokens 8192"
func (c Check) leaves(subject string) (all []Check) {
	for _, p := range c.Parts {
		of := p.Name
		if len(c.Parts) == 1 {
			of = subject
		} else if subject != "" {
			of = fmt.Sprintf("%s (%s)", subject, p.Name)
		}
		p.Name = c.Name
		all = append(all, p.leaves(of)...)
	}
	if len(c.Parts) == 0 {
		c.Subjects = []string{subject}
		all = []Check{c}
	}
	return all
}

// SchemaVersion is the version of Result's JSON. Version 4 says "below the threshold", and no verdict of
// fewer than five launches that hold all arms.
const SchemaVersion = 4

// StepsNS are the times of a step, in nanoseconds, in the complete pairs of the normal or
// the perfect arm; see Metric.StepNS. The warning says why there are none, else it has no code.
func (r Result) StepsNS(arm Arm, tokens float64) (ns []float64, why router.Warning) {
	const noSteps = "campaign_step_time"
	if len(r.Points) > 0 {
		return nil, router.Warn(noSteps, "", "why", "points")
	}
	why = router.Warn(noSteps, "", "why", "no_pair")
	for _, p := range r.Pairs {
		if p.Arm != "" || p.Status != PairComplete {
			continue
		}
		value := map[Arm]router.Number{Normal: p.Normal, Perfect: p.Perfect}[arm]
		step := r.Metric.StepNS(value.Float64(), tokens)
		if !step.Defined() {
			return nil, router.Warn(noSteps, "", "why", "metric", "name", r.Metric.Name, "unit", r.Metric.Unit)
		}
		ns, why = append(ns, step.Float64()), router.Warning{}
	}
	return ns, why
}

// PointGain is the gain at one load. Its interval is one of all points' together.
type PointGain struct {
	Name    string  `json:"name"`
	Value   float64 `json:"value"` // positive, such as the number of concurrent requests
	Gain    Gain    `json:"gain"`
	Verdict Verdict `json:"verdict"`
	Share   *Share  `json:"share_of_ceiling,omitempty"`
	Dose    *Dose   `json:"dose,omitempty"`
}
