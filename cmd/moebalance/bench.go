package main

import (
	"errors"

	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/compare/source"
)

// answer starts or resumes a campaign, sees it through and judges it.
func (o *benchOptions) answer(c call) (d document, err error) {
	if err := o.check(c); err != nil {
		return d, err
	}
	campaign, err := o.open()
	if err != nil {
		return d, err
	}
	runErr := o.runCampaign(c.Context(), campaign, c.ErrOrStderr())
	if runErr != nil && !errors.Is(runErr, errNotComparable) {
		return d, o.stopped(campaign, runErr)
	}
	result := source.Judge(campaign)
	if err := campaign.Close(); err != nil {
		return d, err
	}
	return render.Campaign(result), o.judge(result)
}
