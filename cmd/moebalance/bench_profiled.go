package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
)

// readProfiled hands the exports of the profiled pair to the trace reader. A pair
// that was not profiled gives none; exports that cannot be read do not spoil the
// campaign. With keep, each arm is reduced once to a summary in the campaign
// folder; a verb that only reads a campaign writes nothing there. The error is
// that of an interruption.
func readProfiled(ctx context.Context, c *bench.Campaign, keep bool) (arms []render.ProfiledArm, proof bench.TraceProof, err error) {
	arms = []render.ProfiledArm{}
	traces := make(map[bench.Arm]*nsys.Trace)
	for _, arm := range bench.Arms {
		exports := c.Exports(arm)
		if len(exports) == 0 {
			continue
		}
		p := render.ProfiledArm{Arm: string(arm), Exports: exports, Layer: router.None, MaxOverMean: router.Undefined(),
			Summary: filepath.Join(c.Folder, fmt.Sprintf("trace-%s.summary", arm))}
		t, err := readArm(ctx, &p, nsys.Options{Threshold: defaultThreshold}, keep)
		switch {
		case err == nil:
			describe(&p, t, c.Spec.Treatment)
			traces[arm] = t
		case ctx.Err() != nil:
			return nil, proof, ctx.Err()
		default:
			p.Error = err.Error()
		}
		arms = append(arms, p)
	}
	if len(traces) == len(bench.Arms) {
		proof = diff.ProveRouting(traces[bench.Normal], traces[bench.Perfect])
	}
	return arms, proof, nil
}

// readArm reads the arm's summary, which with keep it writes first if it is not there
// yet. Without a summary, because none is to be written or none can be, it reads
// the exports themselves.
func readArm(ctx context.Context, p *render.ProfiledArm, o nsys.Options, keep bool) (*nsys.Trace, error) {
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

// shownByCaptures reports whether the captures of a launch show its arm: they look
// for the switches that they know.
func shownByCaptures(t bench.Treatment) bool {
	return slices.ContainsFunc(t.Names(), func(name string) bool { return slices.Contains(nsys.ArmVariables, name) })
}

func describe(p *render.ProfiledArm, t *nsys.Trace, treatment bench.Treatment) {
	p.Ranks, p.GPUNS = len(t.Ranks), t.Coverage.GPUNS
	if shownByCaptures(treatment) {
		p.SeenArm, p.Evidence = t.Arm, t.ArmEvidence // else the traces look for other switches
	}
	if o, ok := t.RankTime(); ok {
		p.Layer, p.MaxOverMean = o.WorstLayer, o.WorstMaxOverMean
	}
}

// judgeProfiled judges what a campaign has so far, the traces of its profiled
// pair included, whose summaries it may keep in the campaign folder.
func judgeProfiled(ctx context.Context, c *bench.Campaign, keep bool) (render.Campaign, error) {
	arms, traces, err := readProfiled(ctx, c, keep)
	if err != nil {
		return render.Campaign{}, err
	}
	r := render.Campaign{
		Result:  gain.Judge(bench.Recorded(c, c.Confidence(), traces)),
		Version: version, Campaign: stateOf(c), Profiled: arms,
	}
	r.Checks = append(r.Checks, render.ProfiledChecks(arms)...)
	return r, nil
}

func stateOf(c *bench.Campaign) render.CampaignState {
	return render.CampaignState{
		Folder: c.Folder, Treatment: c.Spec.Treatment.Name, Order: string(c.Spec.Design.Order), Seed: c.Spec.Design.Seed, Pairs: c.Spec.Design.Pairs,
		Launches: c.Finished(), Left: c.Left(), Sessions: c.Sessions, Confidence: c.Spec.Confidence, Looks: c.Looks(), DecidedAfter: stated(c.Decided), Format: c.Format(),
	}
}
