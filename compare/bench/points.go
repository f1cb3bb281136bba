package bench

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
)

// Points are the loads at which both arms are measured, such as numbers of concurrent
// requests. {NAME} in a command stands for the value of one: in the engine's command each
// point has launches of its own, in that of a server's client each launch of the server
// has a run of the client per point. A command with {points} measures all of them itself
// and prints a report for each, in that order.
type Points struct {
	Name   string   `json:"name"`
	Values []string `json:"values"` // as typed, ascending
	// Experts and TopK are those of the model, 0 where it is not named.
	Experts int `json:"experts,omitempty"`
	TopK    int `json:"top_k,omitempty"`
}

// allPoints is the placeholder of a command that measures all points itself.
const allPoints = "points"

// reserved are the names of the other placeholders.
var reserved = []string{"arm", "launch", "pair", "out", "seed", allPoints}

var pointName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// ParsePoints reads NAME=VALUE,VALUE….
func ParsePoints(s string) (Points, error) {
	name, list, ok := strings.Cut(s, "=")
	switch {
	case !ok || !pointName.MatchString(name):
		return Points{}, fmt.Errorf("points %q: want NAME=VALUE,VALUE…, such as concurrency=1,8,64,256", s)
	case slices.Contains(reserved, name):
		return Points{}, fmt.Errorf("points %q: {%s} stands for something else: choose another name", s, name)
	}
	p := Points{Name: name}
	for v := range strings.SplitSeq(list, ",") {
		v = strings.TrimSpace(v)
		if n, err := strconv.ParseFloat(v, 64); err == nil && n > 0 && n <= 1e15 {
			p.Values = append(p.Values, v)
			continue
		}
		numbers, err := input.Numbers(v)
		if err != nil || numbers[0] == 0 {
			return Points{}, fmt.Errorf(
				"points %q: value %q: want positive numbers, or a range such as 1-4 or 16-64:16", s, v)
		}
		for _, n := range numbers {
			p.Values = append(p.Values, strconv.Itoa(n))
		}
	}
	slices.SortStableFunc(p.Values, func(a, b string) int { return cmp.Compare(number(a), number(b)) })
	for i := 1; i < len(p.Values); i++ {
		if number(p.Values[i]) == number(p.Values[i-1]) {
			return Points{}, fmt.Errorf("points %q: %s is named twice", s, p.Values[i])
		}
	}
	if len(p.Values) < 2 {
		return Points{}, fmt.Errorf("points %q: want two values or more", s)
	}
	return p, nil
}

// number is a checked value of a point.
func number(value string) float64 {
	n, _ := strconv.ParseFloat(value, 64)
	return n
}

// in reports whether a word has a placeholder of that name.
func in(words []string, name string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, "{"+name+"}") })
}

// checkPoints reports points that the commands do not use, or use twice.
func (s Spec) checkPoints() error {
	p := s.Points
	if p == nil {
		return nil
	}
	client := slices.Concat(s.Command.Normal, s.Command.Perfect)
	one, all := in(client, p.Name) || s.perLaunch() != nil, in(client, allPoints)
	switch {
	case one && all:
		return fmt.Errorf("the command has {%s} and {%s}: want one of them", p.Name, allPoints)
	case !one && !all:
		return fmt.Errorf("--points %s: the command has no {%[1]s}: write it where the value goes, or {%s} where the command takes all values (%s) and prints a report for each",
			p.Name, allPoints, strings.Join(p.Values, ","))
	}
	return nil
}

// perLaunch are the points that need launches of their own, nil where there are none.
func (s Spec) perLaunch() []string {
	if s.Points == nil {
		return nil
	}
	words := slices.Concat(s.Command.engine(gain.Normal), s.Command.engine(gain.Perfect))
	for _, a := range s.Arms {
		words = append(words, a.Flags...)
	}
	if !in(words, s.Points.Name) {
		return nil
	}
	return s.Points.Values
}

// perClient reports whether each launch of a server has a run of its client per point.
func (s Spec) perClient() bool {
	return s.Points != nil && s.perLaunch() == nil && in(slices.Concat(s.Command.Normal, s.Command.Perfect),
		s.Points.Name)
}

// drawn is the order of a pair's points, the same in both of its arms.
func drawn(seed uint64, pair int, values []string) []string {
	draw := rand.New(rand.NewPCG(seed, 0x706f696e7473<<16+uint64(pair+1))) // a stream per pair, apart from the arms'
	order := slices.Clone(values)
	draw.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}

// order are the points of a launch that has several, in the order they are measured.
func (s Spec) order(l Launch) []string {
	if s.Points == nil || l.Point != "" {
		return nil
	}
	return drawn(s.Design.Seed, l.Pair, s.Points.Values)
}

// judged are the points for package gain.
func (p *Points) judged(ranks int) (name string, points []gain.Point) {
	if p == nil {
		return "", nil
	}
	for _, v := range p.Values {
		points = append(points,
			gain.Point{Value: number(v),
				TokensPerExpert: gain.TokensPerActiveExpert(p.tokens(number(v), ranks).Float64(), p.Experts, p.TopK)})
	}
	return p.Name, points
}

// tokens are those of a decode step at a point, over all ranks: one for each concurrent
// request, or as many on each rank. Undefined where the name says neither.
func (p *Points) tokens(value float64, ranks int) router.Number {
	switch strings.ReplaceAll(strings.ToLower(p.Name), "-", "_") {
	case "concurrency", "max_concurrency", "batch", "batch_size", "max_batch_size", "bs":
		return router.Number(value)
	case "tokens", "tokens_per_rank":
		if ranks > 0 {
			return router.Number(value * float64(ranks))
		}
	}
	return router.Undefined()
}

// PointRun is what one launch measured at one of its points.
type PointRun struct {
	Value      string          `json:"value"`
	Attempt    int             `json:"attempt"` // whose engine it was measured on
	DurationNS int64           `json:"duration_ns"`
	Result     *metrics.Result `json:"result"`
}

// views are an attempt once for each of its points, with the result at that; itself where
// it has none.
func (a Attempt) views() []Attempt {
	var views []Attempt
	for _, s := range a.Segments {
		if s.Counts {
			view := a
			view.Result, view.DurationNS = s.Result, s.DurationNS
			views = append(views, view)
		}
	}
	if len(a.Points)+len(views) == 0 {
		return []Attempt{a}
	}
	for _, p := range a.Points {
		view := a
		view.Result, view.DurationNS = p.Result, p.DurationNS
		views = append(views, view)
	}
	return views
}
