package render

import (
	"cmp"
	"path/filepath"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
)

// Of lays a gathered result out as its verb does, beside others. Its commands name the files that it was read from, and
// the files of the normal side among the others; the result of a verb, which does not hold these, has its commands.
func Of(in source.Item, beside ...source.Item) output.Document {
	d, given := output.Document{}, cmp.Or(launch.Quote(in.Given), "FILES")
	switch {
	case in.Campaign != nil:
		return Campaign(*in.Campaign)
	case in.Compared != nil:
		var of answer.Compared
		for _, other := range beside {
			switch t := other.Trace; {
			case t != nil && t.Arm == string(gain.Normal):
				of.Counts, of.Normal = launch.Quote(other.Counted), launch.Quote(other.Given)
			case t != nil && t.Arm == string(gain.Perfect):
				of.Perfect = launch.Quote(other.Given)
			}
		}
		return Comparison(*in.Compared, of)
	case in.Cache != nil:
		folder := in.Name
		if entries := in.Cache.Entries; len(entries) > 0 { // the input may be the JSON of logits verify
			folder = filepath.Dir(entries[0].Path)
		}
		return VerifiedCache(folder, *in.Cache)
	case in.Trace != nil:
		if len(in.Counted) > 0 {
			given = "--counts " + launch.Quote(in.Counted) + " " + given
		}
		d = Trace(in.Trace, given)
	case in.Counts != nil:
		d = Counts(in.Counts, given)
	case in.Place != nil:
		d = Place(in.Place, "")
	}
	if len(in.Given) == 0 && len(in.Next) > 0 {
		d.Answer.Next = nil
		for _, s := range in.Next[:min(len(in.Next), 2)] {
			d.Answer.Next = append(d.Answer.Next, answer.Step(s))
		}
	}
	return d
}
