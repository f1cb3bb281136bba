package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/bench/proof"
	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
)

// Campaign is the JSON of bench: the judged campaign, its state, and what the traces
// of its profiled pair show.
type Campaign struct {
	gain.Result
	Version  string        `json:"version"` // of the program that judged it
	Campaign CampaignState `json:"campaign"`
	Profiled []ProfiledArm `json:"profiled"` // empty without a profiled pair
	// Iterations is what the iteration logs of the launches show; nil without logs of
	// both arms.
	Iterations *bench.Iterations `json:"iterations,omitempty"`
}

// CampaignState is the design of a campaign and its progress.
type CampaignState struct {
	Folder       string        `json:"folder"`
	Treatment    string        `json:"treatment"`
	Server       bool          `json:"server,omitempty"` // launches start one, and measure it by a client
	Seed         uint64        `json:"seed"`
	Pairs        int           `json:"pairs"`    // of the design, under the sequential rule at most
	Launches     int           `json:"launches"` // finished
	Left         int           `json:"left"`     // still to be launched
	Sessions     int           `json:"sessions"`
	Confidence   float64       `json:"confidence"`          // asked for; under the sequential rule of all looks together
	Looks        []int         `json:"looks"`               // pairs after which the rule looks; empty without it
	DecidedAfter router.OptInt `json:"decided_after_pairs"` // undefined unless a look decided
	Format       string        `json:"format"`              // of the benchmark's report
	// flags by which it is judged, other than those it was run under
	Rejudged []string  `json:"rejudged,omitempty"`
	Created  time.Time `json:"created,omitzero"`
	GPUs     string    `json:"gpus,omitempty"` // of the last launch that saw some, such as "4 × NVIDIA H200"
}

// ProfiledArm is what the traces of one arm's profiled launch show.
type ProfiledArm struct {
	Arm      string   `json:"arm"`
	Summary  string   `json:"summary"` // file for trace, compare and report; empty where none could be written
	Exports  []string `json:"exports"`
	Ranks    int      `json:"ranks"`
	GPUNS    int64    `json:"gpu_ns"`
	SeenArm  string   `json:"seen_arm"` // what the traces themselves show: normal, perfect or nothing
	Evidence string   `json:"evidence"` // of that; empty where traces do not record the treatment's switch
	// with the largest imbalance of expert time over ranks; null where none is known
	Layer       router.OptInt `json:"layer"`
	MaxOverMean router.Number `json:"rank_time_max_over_mean"`
	Error       string        `json:"error,omitempty"` // why the exports could not be read
}

// WriteFile writes a file whole or not at all.
type WriteFile func(path string, render func(io.Writer) error) error

// HoldsCampaign reports whether a path is a campaign folder or the JSON result of bench.
func HoldsCampaign(path string) bool {
	head, err := headOf(path)
	return bench.IsCampaign(path) || err == nil && verbOf(head) == "bench"
}

// ReadCampaign is the campaign in a folder, judged, or the JSON result of bench in a file.
func ReadCampaign(ctx context.Context, path string, threshold float64) (Campaign, error) {
	if bench.IsCampaign(path) {
		c, err := bench.Open(path)
		if err != nil {
			return Campaign{}, err
		}
		judged, err := Judge(ctx, c, threshold, nil)
		return judged, errors.Join(err, c.Close())
	}
	switch item, err := ReadResult(path); {
	case err != nil:
		return Campaign{}, err
	case item.Campaign == nil:
		return Campaign{}, &input.Error{File: path, Expected: "a campaign folder or the JSON result of bench",
			Found: "a result of another verb"}
	default:
		return *item.Campaign, nil
	}
}

// Judge judges the launches and the profiled traces that a campaign has so far.
// Unless write is nil, it keeps a summary of each arm's traces in the campaign folder.
// Exports that cannot be read become an error of their arm; the returned error is
// that of an interruption.
func Judge(ctx context.Context, c *bench.Campaign, threshold float64, write WriteFile) (Campaign, error) {
	arms, proof, found, err := readProfiled(ctx, c, threshold, write)
	if err != nil {
		return Campaign{}, err
	}
	recorded := bench.Recorded(c, c.Confidence(), proof)
	recorded.Checks = append(recorded.Checks, found...)
	r := Campaign{
		Result:   gain.Judge(recorded),
		Profiled: arms, Iterations: c.Iterations(),
		Campaign: CampaignState{
			Folder: c.Folder, Treatment: c.Spec.Treatment.Name, Seed: c.Spec.Design.Seed,
			Server: len(c.Spec.Command.Server) > 0, Pairs: c.Spec.Design.Pairs,
			Launches: c.Finished(), Left: c.Left(), Sessions: c.Sessions, Confidence: c.Spec.Confidence,
			Looks: c.Looks(), DecidedAfter: router.Known(c.Decided), Format: c.Format(),
			Created: c.Created, GPUs: gpus(c),
		},
	}
	for _, arm := range arms {
		if arm.Error == "" && arm.SeenArm != "" {
			r.Checks = append(r.Checks, arm.check())
		}
	}
	return r, nil
}

// gpus names the GPUs that nvidia-smi showed beside the last launch that recorded some.
func gpus(c *bench.Campaign) string {
	for _, l := range slices.Backward(c.Launches) {
		for _, a := range slices.Backward(l.Attempts) {
			var names []string
			for _, g := range a.GPUs {
				names = append(names, g.Name)
			}
			if slices.Sort(names); len(names) > 0 {
				return fmt.Sprintf("%d × %s", len(names), strings.Join(slices.Compact(names), ", "))
			}
		}
	}
	return ""
}

func readProfiled(ctx context.Context, c *bench.Campaign, threshold float64, write WriteFile) (arms []ProfiledArm,
	proof gain.TraceProof, found []gain.Check, err error) {
	arms = []ProfiledArm{}
	traces := make(map[gain.Arm]*trace.Trace)
	for _, arm := range gain.Arms {
		exports := c.Exports(arm)
		if len(exports) == 0 {
			continue
		}
		p := ProfiledArm{Arm: string(arm), Exports: exports, Layer: router.NoID, MaxOverMean: router.Undefined(),
			Summary: filepath.Join(c.Folder, fmt.Sprintf("trace-%s.summary", arm))}
		o := trace.Options{Threshold: threshold}
		if c.Spec.Design.Within() { // no summary of one arm tells it from the other
			o.Arm, p.Summary, write = string(arm), "", nil
		}
		t, err := p.read(ctx, o, write)
		switch {
		case err == nil:
			p.describe(t, c.Spec.Treatment)
			traces[arm] = t
		case ctx.Err() != nil:
			return nil, proof, nil, ctx.Err()
		default:
			p.Error = err.Error()
		}
		arms = append(arms, p)
	}
	if len(traces) == len(gain.Arms) {
		normal, perfect := traces[gain.Normal], traces[gain.Perfect]
		compared := diff.Compare(normal, perfect)
		proof = diff.ProveRouting(compared)
		if !c.Spec.Builds.Named() && !c.Spec.Design.Within() { // a launch has untimed runs of either arm
			found = append(found, diff.CheckCompute(compared))
		}
	}
	return arms, proof, found, nil
}

// read reads the arm's summary, which it writes first if it may and there is none.
// Without a summary it reads the exports themselves.
func (p *ProfiledArm) read(ctx context.Context, o trace.Options, write WriteFile) (*trace.Trace, error) {
	if _, err := os.Stat(p.Summary); err != nil && write != nil {
		// A failure here either shows again when the exports are read, or does not matter.
		_ = write(p.Summary, func(w io.Writer) error { return trace.Summarize(ctx, w, p.Exports, o) })
	}
	if _, err := os.Stat(p.Summary); err != nil {
		p.Summary = ""
		return trace.Read(ctx, p.Exports, o)
	}
	return trace.Read(ctx, []string{p.Summary}, o)
}

// describe takes the arm's numbers from its trace. Traces of a treatment whose switch
// they do not record say nothing about the arm.
func (p *ProfiledArm) describe(t *trace.Trace, treatment bench.Treatment) {
	p.Ranks, p.GPUNS = len(t.Ranks), t.Coverage.GPUNS
	if recordsSwitch(treatment) {
		p.SeenArm, p.Evidence = t.Arm, t.ArmEvidence
	}
	if o, ok := t.RankTime(); ok {
		p.Layer, p.MaxOverMean = o.WorstLayer, o.WorstMaxOverMean
	}
}

// recordsSwitch reports whether traces record the switch of a treatment.
func recordsSwitch(t bench.Treatment) bool {
	return slices.ContainsFunc(t.Names(), func(name string) bool { return slices.Contains(capture.ArmVariables, name) })
}

// Argument is the arm as an argument of the verb compare.
func (p ProfiledArm) Argument() string {
	if p.Summary != "" {
		return p.Summary
	}
	return strings.Join(p.Exports, ",")
}

// Comparable reports whether the verb compare takes the traces as this arm: they
// record the treatment's switch and do not show the other arm.
func (p ProfiledArm) Comparable() bool {
	return p.Evidence != "" && (p.SeenArm == "" || p.SeenArm == p.Arm)
}

// check is whether the traces show the arm that was launched.
func (p ProfiledArm) check() gain.Check {
	if p.SeenArm == "" {
		return gain.NewCheck("profiled_arm", gain.Warn, "none", "arm", p.Arm)
	}
	if p.SeenArm != p.Arm {
		return gain.NewCheck("profiled_arm", gain.Warn, "warn", "arm", p.Arm, "seen", p.SeenArm)
	}
	return gain.NewCheck("profiled_arm", gain.Pass, "pass", "arm", p.Arm)
}

// RecordedBalance is the balance of the expert statistics at a path, as proof of how
// a launch was routed. The placement is a file of the command, for statistics that do not
// say where the experts are; empty for none.
func RecordedBalance(path, placement string) (proof.LoadProof, error) {
	record, err := counts.Read(path)
	if err != nil {
		return proof.LoadProof{}, err
	}
	var o counts.Options
	received := record.Experts > 0
	for s, err := range record.Steps() {
		if err != nil {
			return proof.LoadProof{}, err
		}
		received = received && s.Received != nil
	}
	placed := received || record.Placement != nil
	if !placed && placement != "" {
		if o.Placement, err = counts.ReadPlacement(placement, record.Ranks); err != nil {
			return proof.LoadProof{}, err
		}
		placed = true
	}
	layers, _, err := record.Imbalance(o)
	if err != nil {
		return proof.LoadProof{}, err
	}
	u := router.Undefined()
	c := proof.LoadProof{Source: path, Ranks: record.Ranks, TopK: record.TopK, Slots: record.LayerSlots(), Placed: placed,
		RankMean:        imbalance.Summarize(layers, router.LevelRank, imbalance.Load).MaxOverMean,
		RankMaxOverMean: u, RankFloor: u, ExpertMaxOverMean: u, ExpertFloor: u}
	if r := imbalance.Furthest(layers, router.LevelRank, imbalance.Load); r != nil {
		c.RankMaxOverMean, c.RankFloor = r.MaxOverMean, r.Floor
	}
	if r := imbalance.Furthest(layers, router.LevelExpert, imbalance.Load); r != nil {
		c.ExpertMaxOverMean, c.ExpertFloor = r.MaxOverMean, r.Floor
	}
	return c, nil
}

// Asked is the campaign as its answer needs it.
func (c *Campaign) Asked() (gain.Result, gain.Run) {
	state, arms := c.Campaign, c.Profiled
	run := gain.Run{Folder: state.Folder, Left: state.Left, Launches: state.Launches, Confidence: state.Confidence,
		Treatment: state.Treatment, Server: state.Server, Rejudged: state.Rejudged, Decided: state.DecidedAfter}
	if len(arms) == len(gain.Arms) && arms[0].Comparable() && arms[1].Comparable() {
		run.Traces = slices.Compact([]string{arms[0].Argument(), arms[1].Argument()}) // one launch may hold both
	}
	return c.Result, run
}
