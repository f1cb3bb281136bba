package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router/quantity"
)

func benchCmd() *cobra.Command {
	o := newBench()
	c := verb("bench", cobra.ArbitraryArgs, o, o.run)
	c.AddCommand(datasetCmd())
	return tabled(c, render.CampaignTables...)
}

// run starts or resumes a campaign, sees it through and writes its result.
func (o *benchOptions) run(c *cobra.Command, words []string) error {
	if err := o.check(c, words); err != nil {
		return err
	}
	campaign, err := o.open()
	if err != nil {
		return err
	}
	runErr := o.runCampaign(c.Context(), campaign, c.ErrOrStderr())
	if runErr != nil && !errors.Is(runErr, errNotComparable) {
		return o.stopped(campaign, runErr)
	}
	result := source.Judge(campaign)
	if err := campaign.Close(); err != nil {
		return err
	}
	if err := o.write(c, render.Campaign(result)); err != nil {
		return err
	}
	return o.gates(result)
}

// gates turns the result into the exit code that was asked for.
func (o *benchOptions) gates(r source.Campaign) error {
	switch why := answer.Why(r.Result, r.Run); {
	case r.Verdict.Refused():
		return o.judged(exitNotComparable, fmt.Sprintf("bench: %s", r.Verdict), why)
	case o.FailAbove.Given && r.Verdict == gain.NoVerdict:
		return o.judged(exitInconclusive, "bench: --fail-above: no verdict", why)
	case o.FailAbove.Given && !r.Gain.Low.Defined():
		return o.judged(exitInconclusive, "bench: --fail-above: the gain has no interval", why)
	case o.FailAbove.Given && r.Gain.Low.Float64() > o.FailAbove.Is:
		return withCode(exitGate, fmt.Errorf("bench: gain above %s: %s", quantity.Confidence(o.FailAbove.Is),
			why))
	case o.FailAbove.Given && r.Gain.High.Float64() > o.FailAbove.Is:
		return o.judged(exitInconclusive, "bench: --fail-above: the interval holds "+quantity.Confidence(o.FailAbove.Is), why)
	case o.RequireVerdict && r.Verdict.Open():
		return o.judged(exitInconclusive, fmt.Sprintf("bench: %s", r.Verdict), why)
	}
	return nil
}
