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
	a, bad, n := answering([]Caveat{}), 0, len(v.Entries)
	for _, e := range v.Entries {
		if fault := e.Fault(); fault != "" {
			bad++
			a.reason(e.Path + ": " + fault)
		}
	}
	a.Basis = fmt.Sprintf("%d of %s exact", n-bad, quantity.Count(n, "file"))
	folder := launch.Quote([]string{dir})
	drawn, plans := 0, []string{}
	for _, b := range v.Balance {
		if b.Drawn {
			drawn, plans = drawn+b.Entries, append(plans, b.Plan)
		}
	}
	by, uneven := strings.Join(slices.Compact(plans), " and "), ""
	if drawn > 0 {
		uneven = fmt.Sprintf("%d drawn by %s", drawn, by)
	}
	switch best, sizes := v.AtFloor(); {
	case bad > 0:
		a.say(Failed, "cache.failed", "bad", bad, "files", n)
		a.next("rewrite", rewriting(v, folder)...)
		return a.few()
	case sizes == 0 && len(v.Balance) > 0:
		a.say(Complete, "cache.drawn", "files", n, "plan", by)
	case best < sizes:
		a.say(Complete, "cache.some", "files", n, "best", best, "sizes", quantity.Count(sizes, "batch size"), "is", be(sizes),
			"drawn", uneven)
	case drawn > 0:
		a.say(Complete, "cache.mixed", "files", n, "drawn", uneven)
	case n == 1:
		a.say(Complete, "cache.one")
	default:
		a.say(Complete, "cache.all", "files", n)
	}
	a.next("use", "folder", folder)
	return a
}

// rewriting are the values of the command that wrote a cache, as far as its entries tell.
func rewriting(v *logits.Verification, folder string) []any {
	args := []any{"folder", folder, "model", "--model MODEL", "ranks", "RANKS", "mode", "MODE", "dtype", "DTYPE"}
	if len(v.Balance) == 0 {
		return args
	}
	b := v.Balance[0]
	model := launch.Quote([]string{"--model", b.Model})
	if _, err := router.FindModel(b.Model); err != nil { // such as e256k8, whose method is not told by its name
		model += " --method " + string(b.Method)
	}
	return append(args[:2], "model", model, "ranks", fmt.Sprint(b.Ranks), "mode", string(b.Mode), "dtype", string(b.DType))
}

// OfWritten answers what generate made sure of in a cache.
func OfWritten(s logits.Spec, list []logits.Entry, dir string) Answer {
	var fresh, replaced, moved int
	var bytes int64
	a, serve, asked, damaged := answering([]Caveat{}), "", "", []string{}
	for _, o := range list {
		bytes, moved, asked = bytes+o.Bytes, moved+o.ProjectedRows, o.Plan
		switch {
		case o.New:
			fresh++
		case o.Damage != "":
			replaced++
			damaged = append(damaged, caveat.Say("cache.replaced", "path", o.Path, "damage", o.Damage))
		}
		if o.TokensPerRank == logits.AnyTokens {
			serve = "any number of tokens"
		}
	}
	key := "cache.written"
	if fresh+replaced == 0 {
		key = "cache.there"
	}
	a.say(Complete, key, "files", cmp.Or(fresh+replaced, len(list)), "model", s.Model, "ranks", s.Layout.Ranks(), "any", serve)
	if moved > 0 {
		a.because("cache.moved", "tokens", moved)
	}
	for _, text := range damaged {
		a.reason(text)
	}
	a.Basis = fmt.Sprintf("%d new, %d replaced · %s · %s, %s, plan %s", fresh, replaced, quantity.Bytes(float64(bytes)),
		s.DType, s.Mode, asked)
	a.next("verify", "folder", launch.Quote([]string{dir}))
	return a.few()
}
