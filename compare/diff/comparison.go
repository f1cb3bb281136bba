package diff

import (
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
)

// Comparison says where the difference between two sets of traces lies.
// All times are per step and, unless said otherwise, means over ranks. Work and
// collectives are rows of their own: a collective kernel mostly waits for the
// slowest rank, so its time falls with that rank's compute.
type Comparison struct {
	SchemaVersion int    `json:"schema_version"`
	Kind          string `json:"kind"` // always "compare"
	// Comparable is false when the sides cannot be one normal and one perfect
	// arm of the same run; Refusals then say why. The numbers are filled in all
	// the same where they can be.
	Comparable bool             `json:"comparable"`
	Verdict    gain.Verdict     `json:"verdict"` // not comparable, or no verdict: that takes repeated launches
	Refusals   []router.Warning `json:"refusals"`
	Work       []Work           `json:"work"` // what balance cannot change, as far as the sides show it

	// Builds are the names of two builds that stand in the places of normal and perfect.
	Builds gain.Builds `json:"builds,omitzero"`

	Normal  Side  `json:"normal"`
	Perfect Side  `json:"perfect"`
	Ranks   []int `json:"ranks"`  // on both sides
	Layers  []int `json:"layers"` // likewise, without the time outside layers

	// Kinds are the kinds of steps that both arms ran, that with most expert time in the
	// normal arm first: all other numbers are of its steps. Empty where all steps are of
	// one kind, and compared.
	Kinds []KindChange `json:"kinds,omitempty"`

	// Step is the GPU time of a step: per rank the union of its kernels within
	// each layer and phase, added up. Idle gaps between kernels are not in it, and
	// where layers or phases overlap on several streams both count.
	Step       Change           `json:"step"`
	Ceiling    Ceiling          `json:"ceiling"`
	Prediction Prediction       `json:"prediction"`
	Split      Split            `json:"gain_split"`
	Phases     []PhaseChange    `json:"phases"`
	LayerTimes []LayerChange    `json:"layer_times"`
	MostLoss   MostLoss         `json:"most_loss"`
	Kernels    []KernelChange   `json:"kernels"`
	Warnings   []router.Warning `json:"warnings"`

	fused, partial, loadKnown bool // see Fused, FewRanks; whether the load of the normal arm was recorded
}

// FewRanks is the code of the warning that a run has ranks which are not on both sides.
const FewRanks = "few_ranks"

// SchemaVersion is the version of Comparison's JSON.
const SchemaVersion = 3

// Side is what one set of traces says about itself.
type Side struct {
	Arm       string           `json:"arm"` // as recorded: normal, perfect, or empty where not all captures say
	Evidence  string           `json:"evidence"`
	Exports   []string         `json:"exports"`
	Ranks     []int            `json:"ranks"`
	Steps     int              `json:"steps"`     // compared
	StepNS    router.Number    `json:"step_ns"`   // under the profiler, see imbalance.Times
	Structure *trace.Structure `json:"structure"` // where layers are inferred in any step, else nil
	Treatment string           `json:"treatment"` // the switch by which bench reaches the engine, see trace.Trace
}

// PhaseChange is one phase over all compared layers.
type PhaseChange struct {
	Phase      trace.Phase `json:"phase"`
	Collective bool        `json:"collective"` // time in collective kernels; otherwise work
	Change
}

// LayerChange is one phase of one layer; Layer is undefined outside layers.
type LayerChange struct {
	Layer router.OptInt `json:"layer"`
	PhaseChange
}

// MostLoss is the layer with most of the loss by uneven expert time that the perfect arm does not have, and
// its share; undefined without such a layer, and of one alone.
type MostLoss struct {
	Layer router.OptInt `json:"layer"`
	Share router.Number `json:"share"`
}

// BothInOneLaunch reports that the same captures hold both arms.
func (c Comparison) BothInOneLaunch() bool {
	return len(c.Normal.Exports) > 0 && slices.Equal(c.Normal.Exports, c.Perfect.Exports)
}

// Compare compares the traces of a normal and a perfect arm. What both
// have is compared, what only one has is named in the warnings and left out;
// numbers are per step, so the arms may have recorded different numbers of
// steps. It does not fail: sides that are no pair of arms come back with
// Comparable false.
func Compare(normal, perfect *trace.Trace) Comparison {
	return CompareBuilds(normal, perfect, gain.Builds{})
}

func compare(normal, perfect *trace.Trace, builds gain.Builds) Comparison {
	c := Comparison{
		Builds: builds, SchemaVersion: SchemaVersion, Kind: "compare", Comparable: true, Refusals: []router.Warning{},
		Verdict: gain.NoVerdict, Work: []Work{}, Warnings: []router.Warning{},
	}
	ranks := c.common("unequal_ranks", "ranks", ranksOf(normal), ranksOf(perfect))
	layers := c.common("unequal_layers", "layers", layersOf(normal), layersOf(perfect))
	c.Ranks, c.Layers = ranks, named(layers)
	run := max(len(ranksOf(normal)), len(ranksOf(perfect)), int(normal.World), int(perfect.World))
	if c.partial = len(ranks) < run && !builds.Named(); c.partial {
		c.warn(FewRanks, "", "common", len(ranks), "world", run)
	}
	p := arms{newArmTimes(normal, ranks, layers), newArmTimes(perfect, ranks, layers)}
	names := builds.Names()
	c.Normal, c.Perfect = sideOf(normal, p.normal), sideOf(perfect, p.perfect)
	c.warnOfSteps(names[0], p.normal.times)
	c.warnOfSteps(names[1], p.perfect.times)
	c.Step = changeOf(p.normal.busy, p.perfect.busy)
	c.Phases = p.phases(every)
	c.LayerTimes = []LayerChange{}
	for _, layer := range layers {
		for _, row := range p.phases(layer) {
			c.LayerTimes = append(c.LayerTimes, LayerChange{router.OptInt(layer), row})
		}
	}
	c.MostLoss = p.mostLoss()
	c.Ceiling = p.ceiling()
	if c.fused = normal.Doubt().Code == trace.FusedExperts || perfect.Doubt().Code == trace.FusedExperts; c.fused {
		c.withoutExperts()
	}
	c.Kernels = kernelChanges(normal, perfect)
	c.judgeSides(p, normal, perfect)
	c.loadKnown = rankLoad(normal)
	c.Prediction = p.prediction(&c)
	if builds.Named() {
		c.Ceiling.GainBound = router.Undefined()
	} else {
		c.caveats()
	}
	if !c.Comparable {
		c.withoutGain()
	}
	c.split(nil)
	c.copyWarnings(names[0], normal)
	c.copyWarnings(names[1], perfect)
	return c
}

// Fused reports that kernels hold the work and the waiting of a rank in one: of the times,
// those of whole steps are left.
func (c Comparison) Fused() bool { return c.fused }

// withoutExperts takes back what rests on how long the experts of a rank took.
func (c *Comparison) withoutExperts() {
	u := router.Undefined()
	c.Ceiling = Ceiling{Of: c.Ceiling.Of, ExpertShare: u, Balancedness: u, PerfectBalancedness: u, GainBound: u,
		SlowestExperts: changeOf(nil, nil)}
	c.MostLoss = MostLoss{trace.NoID, u}
}

// common returns what both sides have and warns of what one lacks.
func (c *Comparison) common(code, what string, normal, perfect []int) []int {
	both := slices.DeleteFunc(slices.Clone(normal), func(v int) bool { return !slices.Contains(perfect, v) })
	for i, own := range [][]int{normal, perfect} {
		if len(own) == len(both) {
			continue
		}
		left := named(slices.DeleteFunc(slices.Clone(own), func(v int) bool { return slices.Contains(both, v) }))
		why := what
		if len(left) == 0 {
			why = "outside"
		}
		c.warn(code, string(c.Builds.Names()[i]), "why", why, "left", left)
	}
	return both
}

// outsideMargin is the share of kernel time outside every step from which a
// warning is due; Side carries the share itself.
const outsideMargin = 0.01

func (c *Comparison) warnOfSteps(arm gain.Arm, t *imbalance.Times) {
	if t.Unmarked {
		c.warn("no_steps", string(arm), "why", "compared")
	}
	for _, w := range t.Warnings() {
		w.Subject = string(arm)
		c.Warnings = append(c.Warnings, w)
	}
	if t.OutsideShare > outsideMargin {
		c.warn("outside_steps", string(arm), "share", t.OutsideShare)
	}
}

// copyWarnings takes over what a side's reader had to say.
func (c *Comparison) copyWarnings(arm gain.Arm, t *trace.Trace) {
	about := func(w router.Warning) {
		w.Subject = strings.TrimSuffix(string(arm)+": "+w.Subject, ": ")
		c.Warnings = append(c.Warnings, w)
	}
	for _, w := range t.Warnings {
		switch imbalance.Exclusion(w.Code) {
		// warnOfSteps has said it of the compared ranks
		case imbalance.Incomplete, imbalance.WarmUp, imbalance.OtherKind, trace.LateLaunches:
		default:
			about(w)
		}
	}
	for _, e := range t.Exports {
		for _, w := range e.Warnings {
			about(w)
		}
	}
}

func (c *Comparison) warn(code, subject string, args ...any) {
	c.Warnings = append(c.Warnings, router.Warn(code, subject, args...))
}

// arms are both arms over the same ranks and layers.
type arms struct{ normal, perfect *armTimes }

// phases lists the phases of one layer, or of every one, that have any time.
func (p arms) phases(layer int) []PhaseChange {
	rows := []PhaseChange{}
	for _, phase := range phases {
		for _, collective := range []bool{false, true} {
			at := part{layer, phase, collective}
			row := PhaseChange{phase, collective, changeOf(p.normal.of(at), p.perfect.of(at))}
			if !row.nothing() {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// mostLoss compares the layers' losses.
func (p arms) mostLoss() MostLoss {
	most, perfect := MostLoss{trace.NoID, router.Undefined()}, map[router.OptInt]router.Number{}
	for _, l := range p.perfect.times.Judged() {
		perfect[l.Number] = average(l.Loss())
	}
	all, saved, judged := router.Number(0), router.Number(0), p.normal.times.Judged()
	for _, l := range judged {
		if own := average(l.Loss()) - perfect[l.Number]; own > 0 {
			if all += own; own > saved {
				saved, most.Layer = own, l.Number
			}
		}
	}
	if most.Share = saved / all; len(judged) < 2 || !most.Layer.Defined() {
		return MostLoss{trace.NoID, router.Undefined()}
	}
	return most
}
