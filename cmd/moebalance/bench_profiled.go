package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare"
	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
)

// profiledArm is what the traces of one arm's profiled launch say, in brief.
type profiledArm struct {
	Arm         string        `json:"arm"`
	Summary     string        `json:"summary"` // file for trace, compare and report; empty where none could be written
	Exports     []string      `json:"exports"`
	Ranks       int           `json:"ranks"`
	GPUNS       int64         `json:"gpu_ns"`
	SeenArm     string        `json:"seen_arm"` // what the traces themselves show: normal, perfect, mixed or nothing
	Evidence    string        `json:"evidence"` // of that; empty where traces do not know the treatment's switch
	Layer       router.Whole  `json:"layer"`    // whose time over ranks is most uneven; null where none is known
	MaxOverMean router.Number `json:"rank_time_max_over_mean"`
	Error       string        `json:"error,omitempty"` // why the exports could not be read
}

// readProfiled hands the exports of the profiled pair to the trace reader. A pair
// that was not profiled gives none; exports that cannot be read do not spoil the
// campaign. With keep, each arm is reduced once to a summary in the campaign
// folder; a verb that only reads a campaign writes nothing there. The error is
// that of an interruption.
func readProfiled(ctx context.Context, c *bench.Campaign, keep bool) (arms []profiledArm, proof bench.TraceProof, err error) {
	arms = []profiledArm{}
	traces := make(map[bench.Arm]*nsys.Trace)
	for _, arm := range bench.Arms {
		exports := c.Exports(arm)
		if len(exports) == 0 {
			continue
		}
		p := profiledArm{Arm: string(arm), Exports: exports, Layer: router.None, MaxOverMean: router.Undefined(),
			Summary: filepath.Join(c.Folder, fmt.Sprintf("trace-%s.summary", arm))}
		t, err := p.read(ctx, nsys.Options{Threshold: defaultThreshold}, keep)
		switch {
		case err == nil:
			p.take(t, c.Spec.Treatment)
			traces[arm] = t
		case ctx.Err() != nil:
			return nil, proof, ctx.Err()
		default:
			p.Error = err.Error()
		}
		arms = append(arms, p)
	}
	if len(traces) == len(bench.Arms) {
		proof = compare.ProveByTraces(traces[bench.Normal], traces[bench.Perfect])
	}
	return arms, proof, nil
}

// read reads the arm's summary, which with keep it writes first if it is not there
// yet. Without a summary, because none is to be written or none can be, it reads
// the exports themselves.
func (p *profiledArm) read(ctx context.Context, o nsys.Options, keep bool) (*nsys.Trace, error) {
	if _, err := os.Stat(p.Summary); err != nil && keep {
		// Whatever fails here, the exports can do without or will tell again.
		_ = writeFile(p.Summary, func(w io.Writer) error { return nsys.Summarize(ctx, w, p.Exports, o) })
	}
	if _, err := os.Stat(p.Summary); err != nil {
		p.Summary = ""
		return nsys.Read(ctx, p.Exports, o)
	}
	return nsys.Read(ctx, []string{p.Summary}, o)
}

// side is the arm as an argument of the verb compare.
func (p profiledArm) side() string {
	if p.Summary != "" {
		return p.Summary
	}
	return strings.Join(p.Exports, ",")
}

// shownByCaptures reports whether the captures of a launch show its arm: they look
// for the switches that they know.
func shownByCaptures(t bench.Treatment) bool {
	return slices.ContainsFunc(t.Names(), func(name string) bool { return slices.Contains(nsys.ArmVariables, name) })
}

func (p *profiledArm) take(t *nsys.Trace, treatment bench.Treatment) {
	p.Ranks, p.GPUNS = len(t.Ranks), t.Coverage.GPUNS
	if shownByCaptures(treatment) {
		p.SeenArm, p.Evidence = t.Arm, t.ArmEvidence // else the traces look for other switches
	}
	if o, ok := t.RankTime(); ok {
		p.Layer, p.MaxOverMean = o.WorstLayer, o.WorstMaxOverMean
	}
}

func profiledTable(arms []profiledArm) output.Table {
	t := output.Table{Name: "profiled", Title: "The profiled pair (not timed)", Columns: []output.Column{
		{Name: "arm"}, {Name: "ranks", Kind: output.Count}, {Name: "GPU time", Key: "gpu_ns", Kind: output.Duration},
		{Name: "worst layer", Key: "layer", Kind: output.Count}, {Name: "time over ranks, max/mean", Key: "rank_time_max_over_mean", Kind: output.Ratio},
		{Name: "the trace shows", Key: "evidence"}}}
	for _, p := range arms {
		shows := p.Evidence
		if p.Error != "" {
			shows = "unreadable: " + p.Error
		}
		t.Rows = append(t.Rows, []any{p.Arm, p.Ranks, p.GPUNS, p.Layer, p.MaxOverMean, shows})
	}
	return t
}

// comparable reports whether the verb compare takes the traces as this arm: they
// know the treatment's switch, and do not show the other arm.
func (p profiledArm) comparable() bool {
	return p.Evidence != "" && (p.SeenArm == "" || p.SeenArm == p.Arm)
}

// profiledNotes say how to see more of the pair, and warn where its traces show
// another arm than was launched.
func profiledNotes(arms []profiledArm) []string {
	var notes []string
	for _, p := range arms {
		if p.SeenArm != "" && p.SeenArm != p.Arm {
			notes = append(notes, fmt.Sprintf("the traces of the profiled %s launch show the arm %q: %s", p.Arm, p.SeenArm, p.Evidence))
		}
	}
	if len(arms) == len(bench.Arms) && arms[0].comparable() && arms[1].comparable() {
		notes = append(notes, "where the time went: moebalance compare "+bench.Quote([]string{arms[0].side(), arms[1].side()}))
	}
	return notes
}

// profiledChecks ask whether the traces show the arms that were launched.
func profiledChecks(arms []profiledArm) []compare.Check {
	var checks []compare.Check
	for _, p := range arms {
		if p.Error != "" || p.SeenArm == "" {
			continue
		}
		check := compare.Check{Name: "profiled_arm", Status: compare.Pass, Text: fmt.Sprintf("the traces of the %s launch show that arm", p.Arm)}
		if p.SeenArm != p.Arm {
			check.Status, check.Text = compare.Warn, fmt.Sprintf("the traces of the %s launch show the arm %q", p.Arm, p.SeenArm)
		}
		checks = append(checks, check)
	}
	return checks
}
