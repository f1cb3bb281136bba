package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// TourBalance is the balance of a cache of logits.
func TourBalance(in source.Item) string {
	var models []string
	for _, b := range in.Cache.Balance {
		if !slices.Contains(models, b.Model) {
			models = append(models, b.Model)
		}
	}
	return fmt.Sprintf("at the floor over ranks and experts for %d of %s of %s", in.Cache.AtFloor(), quantity.Count(len(in.Cache.Balance), "batch size"), strings.Join(models, " and "))
}

// TourStraggler names the layer of a trace with the largest imbalance of time over ranks.
func TourStraggler(in source.Item) string {
	worst := imbalance.Row{Imbalance: router.Undefined()}
	for _, i := range in.Trace.Imbalance {
		if i.Level == router.LevelRank && i.Quantity == imbalance.Time && !(i.Imbalance <= worst.Imbalance) {
			worst = i
		}
	}
	loss, _ := imbalance.TotalLoss(in.Trace.Stragglers)
	text := fmt.Sprintf("most uneven is layer %d, where expert compute of rank %d takes %s longer than the mean; straggler loss over all layers %s per step",
		worst.Layer, worst.Worst, quantity.Percent(worst.Imbalance), quantity.Duration(loss))
	if w := in.Trace.Waits; len(w) > 0 {
		text += "; ranks wait longest in " + w[0].Sentence(LayerName(in.Trace, w[0].Layer))
	}
	return text
}

// TourDifference leads with the expert compute of the slowest rank, which is what
// balance changes: of the step's GPU time a part is waiting.
func TourDifference(in source.Item) string {
	c := in.Compared
	slowest := c.Ceiling.SlowestExperts
	return fmt.Sprintf("%s of the slowest rank %s to %s per step (%s), straggler loss %s to %s", c.Ceiling.Of.ExpertTime(),
		quantity.Duration(slowest.NormalNS), quantity.Duration(slowest.PerfectNS), quantity.Change(slowest.OfNormal()),
		quantity.Duration(c.Ceiling.StragglerLoss.NormalNS), quantity.Duration(c.Ceiling.StragglerLoss.PerfectNS))
}

// TourGain is the gain of a campaign, and how much of it a further arm recovers.
func TourGain(in source.Item) string {
	c := in.Campaign
	share := ""
	if c.Share != nil && c.Share.Estimate.Defined() {
		share = fmt.Sprintf("; %s placement recovers %s of it", c.Share.Arm, quantity.Percent(c.Share.Estimate))
	}
	return fmt.Sprintf("balanced routing changes throughput by %s (%s to %s, %s confidence, %s): %s",
		quantity.Change(c.Gain.Estimate), quantity.Change(c.Gain.Low), quantity.Change(c.Gain.High), quantity.Confidence(c.Gain.Confidence), quantity.Count(c.Gain.N, "pair"), c.Verdict) + share
}
