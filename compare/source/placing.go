package source

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/router"
)

// Placing is what a placement is asked for with, as flags give it.
type Placing struct {
	Learn, Judge []string // paths of statistics; without any to judge on, the first are divided
	Axes         string
	From         string // a placement
	Plan         string
	Model        *router.Model // nil where it is not named
	// Options has Ranks and Redundant, nil for those that are recorded, and what is not of
	// the other fields.
	Options place.Options

	Records []*counts.Record // once read
}

// Read reads what the paths name, and completes the options. Errors about the flags wrap
// ErrUsage.
func (p *Placing) Read(ctx context.Context) (err error) {
	if err := p.choose(); err != nil {
		return err
	}
	axes, err := counts.ParseAxes(p.Axes)
	if err != nil {
		return usagef("--axes: %v", err)
	}
	isFrom := func(path string) bool { return p.From != "" && filepath.Clean(path) == filepath.Clean(p.From) }
	for _, path := range slices.Concat(p.Learn, p.Judge) {
		r, err := ReadCounts(path, axes)
		if err != nil && isFrom(path) && len(p.Learn) > 1 { // *.json names it too, and it has no counts
			p.Learn = slices.DeleteFunc(slices.Clone(p.Learn), isFrom)
			continue
		}
		if err != nil {
			return err
		}
		p.Records = append(p.Records, r)
	}
	return p.size()
}

// choose reads the flags that name a choice.
func (p *Placing) choose() error {
	o := &p.Options
	switch p.Plan {
	case place.PlanEPLB:
		o.Policy = place.PlanEPLB
	case place.PlanRobust:
	default:
		return usagef("--plan: want robust or eplb, have %q", p.Plan)
	}
	if m := p.Model; m != nil {
		o.Shape, o.MoELayers = &m.Shape, m.Routed()
	}
	return nil
}

// size finds how many ranks and redundant experts there are.
func (p *Placing) size() (err error) {
	o, first := &p.Options, p.Records[0]
	if p.From != "" {
		if len(o.Ranks) > 1 {
			return usagef("--from: want one --ep with it, have %v", o.Ranks)
		}
		ranks := cmp.Or(slices.Max(append([]int{0}, o.Ranks...)), first.Ranks)
		if o.From, err = counts.ReadPlacement(p.From, ranks); err != nil {
			return err
		}
		o.Ranks = []int{o.From.Ranks}
	}
	if len(o.Ranks) == 0 {
		if first.Ranks == 0 {
			return usagef("--ep: want the number of ranks, which %s does not say", first.Source)
		}
		o.Ranks = []int{first.Ranks}
	}
	if o.Redundant == nil {
		o.Redundant = []int{o.Running(p.Records)}
	}
	experts, err := first.ExpertsOf(o.Shape)
	if err != nil {
		return err
	}
	if n, err := place.Impossible(experts, o.Redundant, o.Ranks); err != nil {
		return usagef("--redundant %d: %v", n, err)
	}
	return nil
}

// Windows are those to learn from and to judge on.
func (p *Placing) Windows() (learn, judge []place.Window) {
	if len(p.Judge) == 0 {
		return place.Halves(p.Records)
	}
	return place.Whole(p.Records[:len(p.Learn)]), place.Whole(p.Records[len(p.Learn):])
}
