package answer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// OfCache answers whether the entries of a cache are whole and balanced.
func OfCache(v *logits.Verification, dir string) Answer {
	k, bad, n := knowing([]Caveat{}), 0, len(v.Entries)
	for _, e := range v.Entries {
		if fault := e.Fault(); fault != "" {
			bad++
			k.because("fault", e.Path+": "+fault)
		}
	}
	k.basis = fmt.Sprintf("%d of %s exact", n-bad, quantity.Count(n, "file"))
	drawn, plans := 0, []string{}
	for _, b := range v.Balance {
		if b.Drawn {
			drawn, plans = drawn+b.Entries, append(plans, b.Plan)
		}
	}
	k.know("folder", word(dir), "bad", bad, "files", n)
	if drawn > 0 {
		k.know("drawn", drawn, "plan", strings.Join(slices.Compact(plans), " and "))
	}
	switch best, sizes := v.AtFloor(); {
	case bad > 0:
		k.rewriting(v)
		return k.tell("cache.failed")
	case drawn > 0 || best < sizes:
		if sizes > 0 {
			k.know("best", best, "sizes", sizes)
		}
	default:
		k.know("balanced", "as balanced as can be")
	}
	return k.tell("cache.whole")
}

// rewriting is the command that wrote a cache, as far as its entries tell.
func (k *known) rewriting(v *logits.Verification) {
	if len(v.Balance) == 0 {
		return
	}
	b := v.Balance[0]
	model := launch.Quote([]string{"--model", b.Model})
	if _, err := router.FindModel(b.Model); err != nil { // such as e256k8, whose method is not told by its name
		model += " --method " + string(b.Method)
	}
	k.know("model", model, "ranks", b.Ranks, "mode", string(b.Mode), "dtype", string(b.DType))
}

// OfWritten answers what generate made sure of in a cache.
func OfWritten(s logits.Spec, list []logits.Entry, dir string) Answer {
	var fresh, replaced, moved int
	var bytes int64
	k := knowing([]Caveat{})
	for _, o := range list {
		bytes, moved = bytes+o.Bytes, moved+o.ProjectedRows
		switch {
		case o.New:
			fresh++
		case o.Damage != "":
			replaced++
			text, _ := caveat.Say("replaced", router.Args{"path": o.Path, "damage": o.Damage})
			k.because("fault", text)
		}
		if o.TokensPerRank == logits.AnyTokens {
			k.know("any", "any number of tokens")
		}
	}
	if moved > 0 {
		k.know("moved", moved)
	}
	k.know("files", cmp.Or(fresh+replaced, len(list)), "model", s.Model, "ranks", s.Layout.Ranks(),
		"folder", word(dir))
	k.basis = fmt.Sprintf("%d new, %d replaced · %s · %s, %s, plan %s", fresh, replaced, quantity.Bytes(float64(bytes)),
		s.DType, s.Mode, list[len(list)-1].Plan)
	if fresh+replaced == 0 {
		return k.tell("cache.there")
	}
	return k.tell("cache.written")
}

// OfPlans answers which plans are as even as whole slots allow, and at which numbers of tokens.
func OfPlans(even []string, at, model string, ranks int, mode router.Mode, basis string) Answer {
	k := knowing([]Caveat{})
	k.basis = basis
	k.know("even", even, "at", at, "model", model, "ranks", ranks, "mode", string(mode))
	return k.tell("plans")
}
