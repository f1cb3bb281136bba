package render

import (
	"github.com/moebalance/moebalance/cmd/internal/output"
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
