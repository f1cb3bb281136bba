package gain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/moebalance/moebalance/router"
)

// Result is the result of the bench verb.
type Result struct {
	SchemaVersion int    `json:"schema_version"`
	Kind          string `json:"kind"` // always "bench"
	Head
	// Balance is the grade of the weakest proof: None unless every rank of both arms is proved.
	Balance Grade `json:"balance"`
	// Comparisons are of each arm with the normal one, at each point; Points compare the perfect arm alone, or the
	// build, where there are several loads. All intervals hold together at SimultaneousConfidence.
	Comparisons            []Comparison `json:"comparisons"`
	Points                 []Comparison `json:"points,omitempty"`
	SimultaneousConfidence float64      `json:"simultaneous_confidence,omitempty"`
	// Launches are the units where they hold all arms, Pairs where each is of one: by point, arm and number.
	Launches []Unit `json:"launches,omitempty"`
	Pairs    []Unit `json:"pairs"`
	// Gain is the perfect arm's, or the build's, at the point that leads.
	Gain    Gain    `json:"gain"`
	Verdict Verdict `json:"verdict"`
	// PairsNeeded is how many units in all would decide an inconclusive campaign. Of
	// several points it is of the point that needs most: undefined where one is
	// inconclusive and no number is known that would decide it.
	PairsNeeded router.Number   `json:"pairs_needed"`
	Secondary   []SecondaryGain `json:"secondary"` // by name
}

// Comparison is the gain of an arm over the normal one at a point.
type Comparison struct {
	Arm   Arm     `json:"arm"`
	Name  string  `json:"name,omitempty"`  // of the point, in campaigns with points
	Value float64 `json:"value,omitempty"` // positive, such as the number of concurrent requests
	// Leads marks the comparisons at the point whose interval begins highest.
	Leads   bool    `json:"leads"`
	Gain    Gain    `json:"gain"`
	Verdict Verdict `json:"verdict"`
	// Share is how much of the gain of perfect routing a further arm recovers, ln(arm/normal) / ln(perfect/normal).
	// 1 is all of it; below 0 the arm is slower than the normal one, above 1 faster than the perfect one. All is
	// undefined where the interval of the ceiling is not above zero.
	Share *Interval `json:"share_of_ceiling,omitempty"`
	Dose  *Dose     `json:"dose,omitempty"` // of all arms at the point, beside the perfect one
}

// Main are the comparisons of the perfect arm, or of the build in its place, by point.
func (r Result) Main() []Comparison {
	return only(r.Comparisons, func(c Comparison) bool { return c.Arm == r.Builds.Called(Perfect) })
}

// Leading are the comparisons at the point that leads.
func (r Result) Leading() []Comparison {
	return only(r.Comparisons, func(c Comparison) bool { return c.Leads })
}

// Units are the launches that hold all arms, or the pairs.
func (r Result) Units() []Unit { return slices.Concat(r.Launches, r.Pairs) }

// Failed are the failed checks.
func (r Result) Failed() []Check {
	return only(r.Checks, func(c Check) bool { return c.Status == Fail })
}

// Swapped reports sides that were given in the wrong order.
func (r Result) Swapped() bool {
	return slices.ContainsFunc(r.Checks, func(c Check) bool { return c.Name == CheckProof && c.Args["why"] == "swapped" })
}

// First are the checks that a reader has to know of before the gain.
func (r Result) First() []Check { return only(r.Checks, Check.leads) }

// Undone reports a campaign whose interval decides nothing, wherever it lies: by a check, or by what falls out.
func (r Result) Undone() bool {
	whole := r.Gain.N
	if r.Design != WithinLaunch { // whose launches stay
		whole += r.Outliers()
	}
	return r.Verdict == Inconclusive && undone(r.Checks, whole, r.Gain.N)
}

// Outliers counts the launches that are far off at a point.
func (r Result) Outliers() (n int) {
	for _, c := range r.Checks {
		if launches, _ := c.Args["launches"].([]any); c.Name == CheckOutliers {
			n = max(n, len(launches))
		}
	}
	return n
}

// Called is the name of an arm for people: random routing is not called perfect, and
// builds have names of their own.
func (r Result) Called(a Arm) Arm {
	if a == Perfect && r.Chance {
		return ChanceArm
	}
	return r.Builds.Called(a)
}

// Run is the design of a campaign and its progress.
type Run struct {
	Folder    string `json:"folder"`
	Treatment string `json:"treatment"`        // by name
	Server    bool   `json:"server,omitempty"` // launches start one, and measure it by a client
	// Again is what is measured, as bench takes it behind the design; empty where that is not known.
	Again    string    `json:"again,omitempty"`
	Format   string    `json:"-"` // of the first report, where reports are compared
	Reports  string    `json:"-"` // as arguments of compare, likewise
	Seed     uint64    `json:"seed"`
	Pairs    int       `json:"pairs"`           // of the design
	Launches int       `json:"launches"`        // finished
	Left     int       `json:"left"`            // still to be launched
	Ranks    int       `json:"ranks,omitempty"` // 0: unknown
	Created  time.Time `json:"created,omitzero"`
	GPUs     string    `json:"gpus,omitempty"` // of the last launch that saw some, such as "4 × NVIDIA H200"
}

// SchemaVersion is the version of Result's JSON. Version 5 has comparisons in place of arms, share and dose. Of older
// versions Upgrade reads the first, and refuses the others.
const SchemaVersion = 5

// Upgrade makes a result that was read one of today. The gain of version 1 is the comparison, its proofs only said
// whether they prove, and its word for a gain below the threshold was another one.
func (r *Result) Upgrade() error {
	for i, c := range r.Checks {
		r.Checks[i].Subject, r.Checks[i].Subjects = cmp.Or(c.Subject, strings.Join(c.Subjects, ", ")), nil
	}
	switch {
	case r.SchemaVersion >= SchemaVersion:
		return nil
	case r.SchemaVersion > 1:
		return fmt.Errorf("schema_version %d is not read: write it again by 'bench --resume DIR --json'", r.SchemaVersion)
	}
	if r.SchemaVersion = SchemaVersion; r.Verdict == "not significant" {
		r.Verdict = NotSignificant
	}
	r.Comparisons = []Comparison{{Arm: Perfect, Leads: true, Gain: r.Gain, Verdict: r.Verdict}}
	for i := range r.Proof {
		p := &r.Proof[i]
		switch p.Grade = None; {
		case p.Proved && strings.Contains(p.Evidence, "worst layer"):
			p.Grade = Measured
		case p.Proved:
			p.Grade = Claimed
		}
		p.Proved = false
	}
	r.Balance, _ = (&Recorded{Head: r.Head}).checkProof()
	return nil
}

// StepsNS are the times of a step under the perfect arm, in nanoseconds, in the complete pairs; see Metric.stepNS. The
// warning says why there are none, else it has no code.
func (r Result) StepsNS(tokens float64) (ns []float64, why router.Warning) {
	const noSteps = "campaign_step_time"
	if len(r.Points) > 0 {
		return nil, router.Warn(noSteps, "", "why", "points")
	}
	why = router.Warn(noSteps, "", "why", "no_pair")
	for _, u := range only(r.Units(), func(u Unit) bool { return u.Arm == "" && u.complete() }) {
		step := r.Metric.stepNS(u.Perfect.Float64(), tokens)
		if !step.Defined() {
			return nil, router.Warn(noSteps, "", "why", "metric", "name", r.Metric.Name, "unit", r.Metric.Unit)
		}
		ns, why = append(ns, step.Float64()), router.Warning{}
	}
	return ns, why
}
