package place

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/placement"
	"github.com/moebalance/moebalance/router/quantity"
)

// Rebalance is what ways of when to place the experts anew would have given on windows in their
// order. Each decision, and each placement, is from the windows before it alone; the first one
// has none before it, and is learned from only.
type Rebalance struct {
	Order    string    `json:"order"` // ByTime or AsGiven
	Windows  int       `json:"windows"`
	Ways     []Way     `json:"ways"`
	Served   []Served  `json:"served"`
	Settings []Setting `json:"settings"`
	Verdict  Verdict   `json:"verdict"` // whether the chosen way is worth a trial
}

// The orders of windows.
const (
	ByTime  = "time"
	AsGiven = "as given"
)

// Way is one way of when to place the experts anew, and what it gave over the windows after the
// first.
type Way struct {
	Plan
	Name        string        `json:"way"`                      // Never, Once, Always, "every 4", "below 0.85"
	Learns      string        `json:"plan"`                     // PlanRobust of the last windows, PlanEPLB of the last one, …
	Every       int           `json:"every_windows"`            // 0 for a way that does not count them
	Below       router.Number `json:"below_balancedness"`       // of the last window; undefined for none
	Times       int           `json:"rebalances"`               // how often it did
	MaxOverMean router.Number `json:"max_over_mean"`            // mean over windows with load
	Worst       router.Number `json:"worst_max_over_mean"`      // of a window
	Change      router.Number `json:"load_change"`              // of the busiest rank's load, against Never
	Moved       int           `json:"moved_experts"`            // in all
	MovedShare  router.Number `json:"moved_share"`              // of the copies, in one rebalance
	MoveNS      router.Number `json:"move_ns"`                  // in all, of the rank that loads most each time
	TimeNS      router.Number `json:"predicted_expert_move_ns"` // of the experts in all windows, and of the moves
	Chosen      bool          `json:"chosen"`
	served      []Served
}

// The names of ways that have no number.
const (
	Never  = "never"
	Once   = "once"
	Always = "always"
)

// Served is what a way did before a window, and how even it made it.
type Served struct {
	Plan
	Way          string        `json:"way"`
	Learns       string        `json:"plan"`
	Window       string        `json:"window"`
	Time         float64       `json:"unix_s,omitempty"` // when it was recorded, 0 where that is not known
	MaxOverMean  router.Number `json:"max_over_mean"`
	Balancedness router.Number `json:"balancedness"` // mean over layers of mean/max, as SGLang takes it
	MovedShare   router.Number `json:"moved_share"`  // of the copies before it
}

// InOrder takes each record as a window, by time where all tell it and else as given, or divides
// a single one.
func InOrder(records []*counts.Record) (windows []Window, err error) {
	if len(records) == 1 {
		if windows, err = parts(records[0], records[0].Iterations(), mostOrdered); err != nil {
			return nil, err
		}
	} else {
		for _, r := range records {
			windows = append(windows, windowOf(r.Source, r))
		}
	}
	if len(windows) < leastOrdered {
		return nil, &input.Error{File: records[0].Source, Expected: quantity.Count(leastOrdered, "window") +
			" or more in order",
			Found: strconv.Itoa(len(windows)), Try: "give one file for each", Err: counts.ErrOptions}
	}
	if order(windows) == ByTime {
		slices.SortStableFunc(windows, func(a, b Window) int { return cmp.Compare(a.record.Time, b.record.Time) })
	}
	return windows, nil
}

func order(windows []Window) string {
	if slices.ContainsFunc(windows, func(w Window) bool { return w.record.Time == 0 }) {
		return AsGiven
	}
	return ByTime
}

const (
	mostOrdered  = 24 // windows of a single record
	leastOrdered = 3  // windows that an order takes: one to learn from, and two to serve
	mostLearned  = 8  // last windows that a robust plan is of
)

// Rates of rebalancing that are tried: by windows, and by the balancedness of the last one.
var (
	everies = []int{1, 2, 4, 8, 16}
	belows  = []router.Number{0.95, 0.9, 0.85, 0.8, 0.7}
)

// ways are those that so many windows can tell apart.
func ways(windows int) (list []Way) {
	list = []Way{{Name: Never}, {Name: Once}}
	for _, n := range everies {
		if w := (Way{Name: fmt.Sprintf("every %d", n), Every: n}); 2*n < windows {
			if n == 1 {
				w.Name = Always
			}
			list = append(list, w)
		}
	}
	for i := range list {
		list[i].Below = router.Undefined()
	}
	for _, b := range belows {
		list = append(list, Way{Name: fmt.Sprintf("below %g", b), Below: b})
	}
	return list
}

// due reports whether a way places anew before window t, which is above 0.
func (w Way) due(t int) bool {
	switch {
	case w.Below.Defined():
		return w.served[t-1].Balancedness < w.Below
	case w.Every > 0:
		return (t-1)%w.Every == 0
	}
	return w.Name == Once && t == 1
}

// learner is a way of learning from the windows before t.
type learner struct {
	name string
	of   func(t int, running plan) (plan, error)
}

// simulation serves windows, and remembers what it has found.
type simulation struct {
	options Options
	windows []Window
	experts int
	size    placement.Size
	scores  map[serving]score
	placed  map[string]plan // by way of learning and before which windows
	steps   []float64       // of the cost, by window
}

type serving struct {
	from   string // of the plan: how and before which window it was learned
	window int
}

// rebalance simulates the ways, where they are asked for.
func (res *Result) rebalance(at Plan, flat plan, size placement.Size, o Options) error {
	if !o.Rebalance {
		return nil
	}
	s := simulation{options: o, windows: slices.Concat(res.Learned, res.Judged), experts: res.Experts, size: size,
		scores: map[serving]score{}, placed: map[string]plan{}}
	r := &Rebalance{Order: order(s.windows), Windows: len(s.windows)}
	if cost := o.costOn(at.Ranks); cost != nil {
		for _, w := range s.windows {
			s.steps = append(s.steps, float64(w.Slots)/float64(max(1, len(w.shares)))/cost.slots)
		}
	}
	for i, l := range s.learners() {
		for _, w := range ways(len(s.windows)) {
			if w.Name == Never && i > 0 {
				continue
			}
			if w.Plan, w.Learns = at, l.name; w.Name == Never {
				w.Learns = flat.name
			}
			if err := s.serve(&w, flat, l); err != nil {
				return err
			}
			r.Ways = append(r.Ways, w)
		}
	}
	r.choose(res.Threshold)
	r.set(s, size)
	res.Rebalance = r
	return nil
}

// learners are EPLB of the last window, as engines have it, and the default beside it.
func (s *simulation) learners() []learner {
	last := learner{PlanEPLB, func(t int, _ plan) (plan, error) {
		return learned(s.windows[t-1:t], s.experts, s.size)
	}}
	robust := learner{PlanRobust, func(t int, _ plan) (plan, error) {
		return s.options.best(s.windows[max(0, t-mostLearned):t], s.experts, s.size)
	}}
	few := learner{PlanMoves, func(t int, running plan) (plan, error) {
		way, inBudget, err := s.options.way(running, s.windows[max(0, t-mostLearned):t], s.experts, s.size, true)
		if err != nil || len(way) == 0 {
			return running, err
		}
		return way[inBudget], nil
	}}
	switch {
	case s.options.MaxMoves != nil:
		return []learner{few, last}
	case s.options.Policy == PlanEPLB:
		return []learner{last}
	}
	return []learner{robust, last}
}

// place learns before window t, once for all ways, and calls the ranks of all but EPLB's plan so
// that they load few copies, coming from what was placed before the windows of the path.
func (s *simulation) place(l learner, running plan, path []int) (plan, error) {
	t := path[len(path)-1]
	own, whole := fmt.Sprint(l.name, t), fmt.Sprint(l.name, path)
	if l.name == PlanMoves {
		own = whole
	}
	if p, ok := s.placed[whole]; ok {
		return p, nil
	}
	p, ok := s.placed[own]
	if !ok {
		var err error
		if p, err = l.of(t, running); err != nil {
			return p, err
		}
		p.from = own
		s.placed[own] = p
	}
	p = p.over(running)
	if l.name == PlanRobust {
		if err := p.rename(running, s.experts, s.size); err != nil {
			return p, err
		}
	}
	s.placed[whole] = p
	return p, nil
}

// serve runs a way over the windows.
func (s *simulation) serve(w *Way, flat plan, l learner) error {
	running, cost := flat, s.options.costOn(w.Ranks)
	w.MoveNS, w.TimeNS = router.Undefined(), router.Undefined()
	var copies int
	var path []int
	var moves, experts router.Number
	for t, window := range s.windows {
		served := Served{Plan: w.Plan, Way: w.Name, Learns: w.Learns, Window: window.Name, Time: window.record.Time}
		if t > 0 && w.due(t) {
			path = append(path, t)
			next, err := s.place(l, running, path)
			if err != nil {
				return err
			}
			perRank, loaded := loads(running, next, w.Ranks)
			w.Times, w.Moved, copies = w.Times+1, w.Moved+loaded, copies+next.copies()
			served.MovedShare = router.Number(loaded) / router.Number(max(1, next.copies()))
			moves, running = moves+s.options.moveNS(perRank), next
		}
		of, err := s.score(running, t, cost)
		if err != nil {
			return err
		}
		layers := slices.Sorted(maps.Keys(of.ratio))
		served.MaxOverMean = of.overall()
		served.Balancedness = mean(layers, func(layer int) router.Number { return 1 / of.ratio[layer] })
		w.served = append(w.served, served)
		if t == 0 || len(layers) == 0 {
			continue
		}
		w.Worst = max(w.Worst, served.MaxOverMean)
		if len(of.ns) > 0 {
			experts += router.Number(of.ns[0] * s.steps[t])
		}
	}
	w.MaxOverMean = mean(w.served[1:], func(served Served) router.Number { return served.MaxOverMean })
	if w.MovedShare = 0; copies > 0 {
		w.MovedShare = router.Number(w.Moved) / router.Number(copies)
	}
	if w.MoveNS = moves; cost != nil {
		w.TimeNS = experts + moves
	}
	return nil
}

// score is that of a plan on a window; those of plans that several ways share are kept.
func (s *simulation) score(p plan, t int, cost *Cost) (score, error) {
	key := serving{p.from, t}
	if known, ok := s.scores[key]; ok {
		return known, nil
	}
	list, err := s.windows[t].scores([]plan{p}, s.experts, cost)
	if err != nil {
		return score{}, err
	}
	s.scores[key] = list[0]
	return list[0], nil
}

// over is the plan with what runs in the layers that it lacks.
func (p plan) over(running plan) plan {
	out := p.clone()
	for layer, l := range running.layouts {
		if _, ok := out.layouts[layer]; !ok {
			out.layouts[layer], out.slots[layer] = l, running.slots[layer]
		}
	}
	return out
}

// keeps is the share of what the best way gains on load that the chosen one must.
const keeps = 0.9

// choose marks the way of the least predicted time, moves included, or without time the one
// that moves least of those that keep nearly all of what the best one gains; Never where that is
// less than the threshold.
func (r *Rebalance) choose(threshold float64) {
	never := r.Ways[0]
	for i := range r.Ways {
		r.Ways[i].Change = r.Ways[i].MaxOverMean/never.MaxOverMean - 1
	}
	at := least(r.Ways, func(Way) bool { return true })
	if float64(-r.Ways[at].Change) < threshold {
		at = 0
	}
	r.Ways[at].Chosen = true
	if r.Verdict = Trial; at == 0 {
		r.Verdict = NotNow
	}
	for _, w := range r.Ways {
		if w.Chosen || w.Name == Never || w.Name == Always && w.Learns == r.Ways[max(at, 1)].Learns {
			r.Served = append(r.Served, w.served...)
		}
	}
}

// least is the best of the ways that fit; see choose.
func least(list []Way, fits func(Way) bool) int {
	best, at := router.Undefined(), 0
	for _, w := range list {
		if fits(w) && !(w.MaxOverMean >= best) {
			best = w.MaxOverMean
		}
	}
	enough := list[0].MaxOverMean - keeps*(list[0].MaxOverMean-best)
	for i, w := range list {
		better := cmp.Or(cmp.Compare(w.Moved, list[at].Moved), cmp.Compare(w.Times, list[at].Times)) < 0 ||
			list[at].MaxOverMean > enough
		if timed := w.TimeNS.Defined() && list[at].TimeNS.Defined(); timed {
			better = cmp.Or(cmp.Compare(w.TimeNS, list[at].TimeNS), cmp.Compare(w.Times, list[at].Times)) < 0
		} else {
			better = better && w.MaxOverMean <= enough
		}
		if fits(w) && better {
			at = i
		}
	}
	return at
}

// ChosenWay is that of a result.
func (r *Rebalance) ChosenWay() Way {
	return r.Ways[slices.IndexFunc(r.Ways, func(w Way) bool { return w.Chosen })]
}
