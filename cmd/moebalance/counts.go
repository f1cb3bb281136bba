package main

import (
	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

type countsOptions struct {
	counts.Options
	From      string        `flag:"placement"`
	Model     *router.Model `flag:"model"`
	Axes      counts.Axes   `flag:"axes"`
	FailAbove *float64      `flag:"fail-above" in:"%"`
	resultFlags
}

// answer leads to place with the same counts and the same placement; of files of both arms it reads the ones of normal
// routing.
func (o *countsOptions) answer(c call) (d document, err error) {
	if o.Ranks < 0 || c.given("ep") && o.Ranks == 0 {
		return d, usagef("--ep: want at least 1 rank, have %d", o.Ranks)
	}
	result, err := o.judge(c.args)
	if err != nil {
		return d, err
	}
	given := c.same(source.Learned(c.args), "ep", "placement", "threshold", "fail-above")
	if o.From != "" {
		given = launch.Quote([]string{"--from", o.From}) + " " + given
	}
	if d = render.Counts(result, given); o.FailAbove == nil {
		return d, nil
	}
	limit := *o.FailAbove
	switch worst := imbalance.Furthest(result.Imbalance, router.LevelRank, imbalance.Load); {
	case worst == nil:
		return d, failf(exitInconclusive, "--fail-above: no layer has a known load over two or more ranks; give --ep if "+
			"the number of ranks is not recorded")
	case router.Above(worst.MaxOverMean, worst.Floor, limit):
		return d, failf(exitGate, "rank load of layer %d is %s above its floor, limit %s: %s", worst.Layer,
			quantity.Percent(worst.MaxOverMean/worst.Floor-1), quantity.Confidence(limit), worst.Source)
	}
	return d, nil
}

// judge reads the records, and the files that flags name, and judges them.
func (o *countsOptions) judge(paths []string) (*counts.Result, error) {
	if o.From != "" {
		var err error
		if o.Placement, err = source.ReadPlacement(o.From, o.Ranks); err != nil {
			return nil, err
		}
	}
	o.Shape, o.MoELayers = o.Model.Sizes(), o.Model.Routed()
	records, err := source.Records(paths, o.Axes)
	result := counts.NewResult(o.Threshold)
	for _, r := range records {
		if err == nil {
			err = result.Add(r, o.Options)
		}
	}
	return result, err
}
