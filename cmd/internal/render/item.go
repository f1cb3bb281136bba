package render

import (
	"slices"
	"strings"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
)

// Of is the document of a result of any kind.
func Of(in source.Item) output.Document {
	switch {
	case in.Campaign != nil:
		return Campaign(*in.Campaign)
	case in.Trace != nil:
		return Trace(in.Trace, in.Name)
	case in.Compared != nil:
		return Comparison(*in.Compared)
	case in.Counts != nil:
		return Counts(in.Counts, in.Name)
	case in.Place != nil:
		return Place(in.Place, "")
	}
	return VerifiedCache(in.Name, *in.Cache)
}

// NotComparable is the first campaign, or else comparison, whose sides are not comparable, and why. The name is
// empty where there is none.
func NotComparable(items []source.Item) (name, why string) {
	judged := slices.ContainsFunc(items, func(in source.Item) bool { return in.Campaign != nil })
	for _, in := range items {
		switch {
		case in.Campaign != nil && in.Campaign.Verdict == gain.NotComparable:
			return in.Name, answer.Why(in.Campaign.Result, in.Campaign.Run)
		case in.Compared != nil && !in.Compared.Comparable && !judged:
			return in.Name, strings.Join(answer.Refusals(in.Compared), "; ")
		}
	}
	return "", ""
}
