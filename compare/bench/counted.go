package bench

import (
	"fmt"
	"math"

	"github.com/moebalance/moebalance/compare/bench/evidence"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router/quantity"
)

// reportedTokens are those that the reports say of all segments under a view's order; false where one does not
// say. Whole says that all of them say input and output.
func (v view) reportedTokens() (tokens float64, whole, known bool) {
	whole = true
	for _, s := range v.Segments {
		if s.Sequence != v.order.Sequence {
			continue
		}
		if s.Result == nil {
			return 0, false, false
		}
		in, read := s.Result.Work[gain.WorkInputTokens]
		out, written := s.Result.Work[gain.WorkOutputTokens]
		if !read && !written {
			return 0, false, false
		}
		whole = whole && read && written
		tokens += in + out
	}
	return tokens, whole, tokens > 0
}

// tokensOff is the factor by which counted and reported tokens may differ: prefix caches,
// padding, drafts, preempted requests, warm-up and idle ranks part them.
const tokensOff = 2

// otherWork says how the counts contradict the reported tokens; empty where they do not.
// Without a top-k, of which the counts of a layer are a multiple, too few slots contradict
// alone; without both kinds of tokens, too.
func (v view) otherWork() string {
	c := v.order.Counted
	reported, whole, known := v.reportedTokens()
	if !known || len(c.Slots) == 0 {
		return ""
	}
	slots := 0.0
	for _, n := range c.Slots {
		slots += float64(n)
	}
	counted := slots / float64(len(c.Slots)) / float64(max(1, c.TopK))
	if c.Recorded > 0 {
		counted /= c.Recorded
	}
	if counted*tokensOff >= reported && (!(whole && c.TopK > 0) || counted <= tokensOff*reported) {
		return ""
	}
	return fmt.Sprintf("they hold %s per layer, the report says %s: record all steps of the measured requests alone",
		quantity.Count(int64(math.Round(counted)), "token"), quantity.Count(int64(reported), "token"))
}

// placement is the option or variable by which the launch places experts, empty for none,
// and the file that it names, if it names one.
func (a Attempt) placement(folder string) (named, file string) {
	return evidence.Placement(a.Arguments, a.Environment, folder)
}
