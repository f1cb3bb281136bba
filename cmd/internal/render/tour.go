package render

import (
	"fmt"
	"strings"

	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router/quantity"
)

// TourBalance is the balance of a cache of logits.
func TourBalance(in source.Item) string { return answer.OfCache(in.Cache, "").Line }

// TourLoad is the load of expert statistics.
func TourLoad(in source.Item) string { return answer.OfCounts(in.Counts, "").Line }

// TourDifference leads with the expert compute of the slowest rank, which is what
// balance changes: of the step's GPU time a part is waiting.
func TourDifference(in source.Item) string {
	c := in.Compared
	slowest := c.Ceiling.SlowestExperts
	return fmt.Sprintf("%s of the slowest rank falls from %s to %s per step.", c.Ceiling.Of.ExpertTime(),
		quantity.Duration(slowest.NormalNS), quantity.Duration(slowest.PerfectNS))
}

// TourGain is the gain of a campaign.
func TourGain(in source.Item) string {
	a := answer.OfCampaign(in.Campaign.Asked())
	line := strings.TrimSuffix(a.Line, ".")
	if len(a.Numbers) > 0 {
		line += " (" + a.Numbers[0].Interval() + ")"
	}
	return line + ": " + string(a.Verdict)
}
