package answer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router/quantity"
)

// OfCache answers whether the entries of a cache are whole and balanced.
func OfCache(v *logits.Verification, dir string) Answer {
	k, bad, drawn, plans, disagree := knowing([]Caveat{}), 0, 0, []string{}, false
	for _, e := range v.Entries {
		if fault := e.Fault(); fault != "" {
			bad++
			k.because("fault", e.Path+": "+fault)
			disagree = disagree || strings.HasPrefix(fault, logits.Disagree) // writing it again does not mend it
			k.know("bad", bad, "agreed", when(disagree, word(strings.TrimRight(dir, "/")+"-diagonal")))
		}
	}
	for _, b := range v.Balance {
		k.know("model", b.Model, "ranks", b.Ranks, "mode", string(b.Mode), "dtype", string(b.DType))
		if b.Drawn {
			drawn, plans = drawn+b.Entries, append(plans, b.Plan)
			k.know("drawn", drawn, "plan", strings.Join(slices.Compact(plans), " and "))
		}
	}
	best, sizes := v.AtFloor()
	k.know("folder", word(dir), "files", len(v.Entries), "exact", len(v.Entries)-bad, "best", best, "sizes",
		positive(sizes), "balanced", when(drawn == 0 && best == sizes, "as balanced as can be"))
	return k.tell("cache")
}

// OfWritten answers what generate made sure of in a cache.
func OfWritten(s logits.Spec, list []logits.Entry, dir string) Answer {
	k, fresh, replaced, bytes := knowing([]Caveat{}), 0, 0, int64(0)
	for _, o := range list {
		bytes += o.Bytes
		if o.New {
			fresh++
		} else if o.Damage != "" {
			replaced++
			k.because("fault", fmt.Sprintf("replaced %s: %s", o.Path, o.Damage))
		}
	}
	k.know("made", positive(fresh+replaced), "files", len(list), "model", s.Model, "ranks", s.Layout.Ranks(),
		"folder", word(dir), "new", fresh, "replaced", replaced, "size", quantity.Bytes(float64(bytes)),
		"dtype", string(s.DType), "mode", string(s.Mode), "plan", list[len(list)-1].Plan,
		"any", when(list[len(list)-1].TokensPerRank == logits.AnyTokens, "any number of tokens"))
	return k.tell("cache")
}

// OfPlans answers which plans are as even as whole slots allow, and at which numbers of tokens.
func OfPlans(even []string, at, basis string, of logits.About) Answer {
	k := knowing([]Caveat{})
	k.know("even", even, "at", at, "basis", basis, "model", of.Model, "ranks", of.Ranks, "mode", string(of.Mode))
	return k.tell("plans")
}
