// Package diff compares the traces of two arms: where in a step their difference lies, and what
// balanced routing gains.
//
// Each arm is one table of kernel time by layer, phase and step (arm.go), and what differs is a
// difference of two tables. What balance cannot change must be equal in both (checks.go), else the
// sides did different work and nothing is a gain. The gain is a replay of the normal arm's steps with
// the experts of the perfect arm (gain.go). Where steps are of several kinds, such as prefill and
// decode, each kind is compared with its like (kinds.go).
package diff

import (
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
)

// Comparison says where the difference between two sets of traces lies. Times are nanoseconds per
// step and, unless said otherwise, means over ranks. Work and collectives are rows of their own: a
// collective mostly waits for the slowest rank, so its time falls with that rank's compute.
type Comparison struct {
	SchemaVersion int    `json:"schema_version"`
	Kind          string `json:"kind"` // always "compare"
	// Comparable is false when the sides cannot be one normal and one perfect arm of the same run;
	// Refusals then say why. The numbers are filled in all the same where they can be.
	Comparable bool             `json:"comparable"`
	Verdict    gain.Verdict     `json:"verdict"` // not comparable, or no verdict: that takes repeated launches
	Refusals   []router.Warning `json:"refusals"`
	Work       []Work           `json:"work"` // what balance cannot change, as far as the sides show it

	Builds gain.Builds `json:"builds,omitzero"` // names of two builds in the places of normal and perfect

	Threshold *float64 `json:"threshold,omitempty"` // of a gain: as given, or the campaign's; else gain.DefaultThreshold

	Normal  Side  `json:"normal"`
	Perfect Side  `json:"perfect"`
	Ranks   []int `json:"ranks"`  // on both sides
	Layers  []int `json:"layers"` // likewise, without the time outside layers

	// Kinds are the kinds of steps, the one with most expert time in the normal arm first: all other
	// numbers are of its steps. Empty where all steps are of one kind, and compared.
	Kinds []KindChange `json:"kinds,omitempty"`

	// Step is the GPU time of a step: per rank the union of its kernels within each layer and phase,
	// added up. Idle gaps between kernels are not in it, and where layers or phases overlap on several
	// streams both count.
	Step       Change           `json:"step"`
	Split      Split            `json:"gain_split"`
	Phases     []PhaseChange    `json:"phases"`
	LayerTimes []PhaseChange    `json:"layer_times"`
	Kernels    []KernelChange   `json:"kernels"`
	Warnings   []router.Warning `json:"warnings"`
}

// SchemaVersion is the version of Comparison's JSON.
const SchemaVersion = 6

// Codes of warnings that answers ask for.
const (
	FewRanks         = "few_ranks"          // a rank of the run is not on both sides
	EqualWorkUnknown = "equal_work_unknown" // nothing shows whether both sides did the same work
	SlowGPU          = "slow_gpu"           // a rank takes longer for equal work
	CampaignRefused  = "campaign_refused"   // the campaign failed a check
	CampaignUnlike   = "campaign_unlike"    // the campaign is of another machine
	CampaignApart    = "campaign_apart"     // the intervals of both do not meet
	KindsApart       = "kinds_apart"        // steps of a kind that both arms have are not compared
)

// Side is what one set of traces says about itself.
type Side struct {
	Arm       string        `json:"arm"` // as recorded: normal, perfect, or empty where not all captures say
	Evidence  string        `json:"evidence"`
	Exports   []string      `json:"exports"`
	Ranks     []int         `json:"ranks"`
	Steps     int           `json:"steps"`     // compared
	StepNS    router.Number `json:"step_ns"`   // under the profiler, see imbalance.Times
	Treatment string        `json:"treatment"` // the switch by which bench reaches the engine, see trace.Trace
	// Balancedness is per step the mean rank's expert time over the slowest rank's, both added over layers, mean over
	// steps, in (0, 1]: of balanced routing below 1 by uneven hardware and noise. Undefined for fewer than two ranks.
	Balancedness router.Number `json:"balancedness"`
	SlowestNS    router.Number `json:"experts_slowest_ns"` // of the slowest rank of each layer, added over layers

	gpus []string // names, where recorded
}

// Change is a time in both arms; undefined for an arm without a step.
type Change struct {
	NormalNS     router.Number `json:"normal_ns"`
	PerfectNS    router.Number `json:"perfect_ns"`
	DifferenceNS router.Number `json:"difference_ns"` // perfect − normal: negative where perfect routing is faster
	Ratio        router.Number `json:"ratio"`         // normal / perfect; undefined where perfect has no time
}

func changeOf(normal, perfect router.Number) Change {
	return Change{normal, perfect, perfect - normal, normal / perfect}
}

// OfNormal is the difference as a share of normal, undefined where that has no time.
func (c Change) OfNormal() router.Number { return c.DifferenceNS / c.NormalNS }

// PhaseChange is one phase of one layer, or over all compared layers.
type PhaseChange struct {
	Layer      router.OptInt `json:"layer"` // undefined outside layers, and over all
	Phase      trace.Phase   `json:"phase"`
	Collective bool          `json:"collective"` // time in collective kernels; otherwise work
	Change
}

// BothInOneLaunch reports that the same captures hold both arms.
func (c Comparison) BothInOneLaunch() bool {
	return len(c.Normal.Exports) > 0 && slices.Equal(c.Normal.Exports, c.Perfect.Exports)
}

// compare compares the steps that the traces hold, whatever their kind.
func compare(sides [2]*trace.Trace, builds gain.Builds) Comparison {
	c := Comparison{Builds: builds, SchemaVersion: SchemaVersion, Kind: "compare", Comparable: true,
		Refusals: []router.Warning{}, Verdict: gain.NoVerdict, Work: []Work{}, Warnings: []router.Warning{}}
	layers := common(layersOf(sides[0]), layersOf(sides[1]))
	c.Ranks, c.Layers = common(ranksOf(sides[0]), ranksOf(sides[1])), named(layers)
	a := newArms(sides, c.Ranks, layers)
	c.Normal, c.Perfect = a[0].side(), a[1].side()
	if a[0].times.Of != a[1].times.Of { // GEMMs in one arm, all compute of experts in the other
		c.Normal.SlowestNS, c.Perfect.SlowestNS = router.Undefined(), router.Undefined()
	}
	run := max(len(c.Normal.Ranks), len(c.Perfect.Ranks), int(sides[0].World), int(sides[1].World))
	if len(c.Ranks) < run && !builds.Named() {
		c.warn(FewRanks, "", "common", len(c.Ranks), "world", run)
	}
	c.Step, c.Phases, c.LayerTimes = changeOf(a[0].busy(), a[1].busy()), a.phases(every), []PhaseChange{}
	for _, layer := range layers {
		c.LayerTimes = append(c.LayerTimes, a.phases(layer)...)
	}
	c.Kernels = kernelChanges(sides)
	c.judge(a)
	if c.Split = noSplit(); len(c.Ranks) == run && !builds.Named() {
		c.predict(a)
	}
	if !builds.Named() {
		c.warnOfLaunches()
	}
	if !c.Comparable {
		c.Verdict, c.Step.Ratio = gain.NotComparable, router.Undefined()
	}
	for i, name := range builds.Names() {
		c.warnOfArm(string(name), a[i])
	}
	return c
}

// common is what both lists have.
func common(a, b []int) []int {
	return slices.DeleteFunc(slices.Clone(a), func(v int) bool { return !slices.Contains(b, v) })
}

// leastSwitch is the share of a step from which the cost of the switch is told.
const leastSwitch = 0.002

// warnOfLaunches says that launches differ, and what routing takes longer in the perfect arm, whose
// experts another place chooses: the replay keeps the normal arm's routing, and a measured gain has it in.
func (c *Comparison) warnOfLaunches() {
	c.warn("one_launch", "", "steps", c.Normal.Steps, "others", c.Perfect.Steps)
	for _, p := range c.Phases {
		if p.Phase == trace.PhaseRouter && !p.Collective && p.DifferenceNS > leastSwitch*c.Step.NormalNS {
			c.warn("switch_cost", "", "ns", p.DifferenceNS, "share", p.DifferenceNS/c.Step.PerfectNS)
		}
	}
}

// outsideMargin is the share of kernel time outside every step from which a warning is due.
const outsideMargin = 0.01

// warnOfArm says which steps do not count, of the compared ranks, and what else the arm's reader had to say.
func (c *Comparison) warnOfArm(name string, a *arm) {
	all := a.times.Warnings()
	if a.times.OutsideShare > outsideMargin {
		all = append(all, router.Warn("outside_steps", "", "share", a.times.OutsideShare))
	}
	for _, w := range a.trace.AllWarnings() {
		if !slices.Contains([]imbalance.Exclusion{imbalance.Incomplete, imbalance.WarmUp, imbalance.OtherKind,
			trace.LateLaunches}, imbalance.Exclusion(w.Code)) {
			all = append(all, w)
		}
	}
	for _, w := range all {
		w.Subject = strings.TrimSuffix(name+": "+w.Subject, ": ")
		c.Warnings = append(c.Warnings, w)
	}
}

func (c *Comparison) warn(code, subject string, args ...any) {
	c.Warnings = append(c.Warnings, router.Warn(code, subject, args...))
}
