package source

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/proof"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/shown"
)

// Campaign is the JSON of bench: the judged campaign and its state.
type Campaign struct {
	gain.Result
	Version string   `json:"version"` // of the program that judged it
	Run     gain.Run `json:"campaign"`
	Notes   []string `json:"-"` // what reading its reports found
}

// Judge judges the launches that a campaign has so far.
func Judge(c *bench.Campaign) Campaign {
	recorded := bench.Recorded(c)
	return Campaign{
		Result: gain.Judge(recorded),
		Run: gain.Run{
			Folder: c.Folder, Treatment: c.Spec.Treatment.Name, Seed: c.Spec.Design.Seed,
			Server: len(c.Spec.Command.Server) > 0, Again: launch.Quote(shown.Mask(c.Spec.Typed)), Pairs: c.Spec.Design.Pairs,
			Launches: c.Finished(), Left: c.Left(), Ranks: recorded.Ranks,
			Created: c.Created, GPUs: gpus(c),
		},
	}
}

// gpus names the GPUs that nvidia-smi showed beside the last launch that recorded some, by the first of them:
// "4 × NVIDIA H200".
func gpus(c *bench.Campaign) (text string) {
	for _, l := range c.Launches {
		for _, a := range l.Attempts {
			if len(a.GPUs) > 0 {
				text = fmt.Sprintf("%d × %s", len(a.GPUs), a.GPUs[0].Name)
			}
		}
	}
	return text
}

// RecordedBalance is the balance of the expert statistics at a path, as proof of how
// a launch was routed. The placement is a file of the command, for statistics that do not
// say where the experts are; empty for none.
func RecordedBalance(path, placement string) (p proof.LoadProof, err error) {
	record, err := counts.Read(path)
	if err != nil {
		return p, err
	}
	var o counts.Options
	unplaced := func(s counts.Step) bool { return s.Received == nil }
	placed := record.Placement != nil || record.Experts > 0 && !slices.ContainsFunc(record.Steps(), unplaced)
	if !placed && placement != "" {
		placed = true
		if o.Placement, err = counts.ReadPlacement(placement, record.Ranks); err != nil {
			return p, err
		}
	}
	layers, _, err := record.Imbalance(o)
	if err != nil {
		return p, err
	}
	furthest := func(level string) imbalance.Row {
		none := &imbalance.Row{MaxOverMean: router.Undefined(), Floor: router.Undefined()}
		return *cmp.Or(imbalance.Furthest(layers, level, imbalance.Load), none)
	}
	rank, expert := furthest(router.LevelRank), furthest(router.LevelExpert)
	return proof.LoadProof{Source: path, Ranks: record.Ranks, Experts: record.KnownExperts, TopK: record.TopK,
		Slots: record.LayerSlots(), Placed: placed, RankMaxOverMean: rank.MaxOverMean, RankFloor: rank.Floor,
		RankMean:          imbalance.Summarize(layers, router.LevelRank, imbalance.Load).MaxOverMean,
		ExpertMaxOverMean: expert.MaxOverMean, ExpertFloor: expert.Floor}, nil
}
