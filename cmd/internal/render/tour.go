package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
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
	return fmt.Sprintf("most uneven is layer %d, where expert compute of rank %d takes %s longer than the mean; straggler loss over all layers %s per step",
		worst.Layer, worst.Worst, quantity.Percent(worst.Imbalance), quantity.Duration(loss))
}

// TourDifference leads with the expert compute of the slowest rank, which is what
// balance changes: of the step's GPU time a part is waiting.
func TourDifference(in source.Item) string {
	c := in.Compared
	slowest := [2]router.Number{router.Undefined(), router.Undefined()}
	for _, p := range c.Phases {
		if p.Phase == nsys.PhaseExperts && !p.Collective {
			slowest = [2]router.Number{p.NormalSlowestNS, p.PerfectSlowestNS}
		}
	}
	return fmt.Sprintf("expert compute of the slowest rank %s to %s per step (%s), straggler loss %s to %s",
		quantity.Duration(slowest[0]), quantity.Duration(slowest[1]), quantity.Change(slowest[1]/slowest[0]-1),
		quantity.Duration(c.Ceiling.StragglerLoss.NormalNS), quantity.Duration(c.Ceiling.StragglerLoss.PerfectNS))
}

// TourGain is the gain of a campaign.
func TourGain(in source.Item) string {
	c := in.Campaign
	return fmt.Sprintf("balanced routing changes throughput by %s (%s to %s, %s confidence, %s): %s",
		quantity.Change(c.Gain.Estimate), quantity.Change(c.Gain.Low), quantity.Change(c.Gain.High), quantity.Confidence(c.Gain.Confidence), quantity.Count(c.Gain.N, "pair"), c.Verdict)
}
