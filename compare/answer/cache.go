package answer

import (
	"fmt"

	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router/quantity"
)

// OfCache answers whether the entries of a cache are whole and balanced.
func OfCache(v *logits.Verification, dir string) Answer {
	a := Answer{Verdict: Complete, Numbers: []Number{}, Reasons: []string{}, Next: []Step{}, Caveats: []Caveat{}}
	bad := 0
	for _, e := range v.Entries {
		if e.Fault() == "" {
			continue
		}
		if bad++; bad <= 3 {
			a.Reasons = append(a.Reasons, sentence(e.Path+": "+e.Fault()))
		}
	}
	n := len(v.Entries)
	at, of := v.AtFloor()
	a.Basis = fmt.Sprintf("%d of %s exact", n-bad, quantity.Count(n, "file"))
	switch {
	case bad > 0:
		a.Verdict, a.Line = Failed, fmt.Sprintf("%d of %s in the cache failed.", bad, quantity.Count(n, "file"))
		a.Next = append(a.Next,
			Step{"Write the cache again.", "moebalance logits generate --model MODEL --ep RANKS --cache " +
				launch.Quote([]string{dir})})
	case at == of:
		a.Line = fmt.Sprintf("All %s are exact and as balanced as can be.", quantity.Count(n, "file"))
		if n == 1 {
			a.Line = "The file is exact and as balanced as can be."
		}
	default:
		a.Line = fmt.Sprintf("All %s are exact; %d of %s are as balanced as can be.", quantity.Count(n, "file"),
			at, quantity.Count(of, "batch size"))
	}
	return a
}

// OfWritten answers what generate made sure of in a cache.
func OfWritten(s logits.Spec, list []logits.Outcome, dir string) Answer {
	var fresh, replaced, moved int
	var bytes int64
	serve, asked, why := ".", "", []string{}
	for _, o := range list {
		bytes, moved, asked = bytes+o.Bytes, moved+o.Feasibility.ProjectedRows, o.Plan
		switch {
		case o.New:
			fresh++
		case o.Damage != nil:
			replaced++
			why = append(why, fmt.Sprintf("replaced %s: %v", o.Path, o.Damage))
		}
		if o.Tokens == logits.AnyTokens {
			serve = "; they serve any number of tokens."
		}
	}
	line := fmt.Sprintf("Wrote %s for %s on %s", quantity.Count(fresh+replaced, "file"), s.Model,
		quantity.Count(s.Layout.Ranks(), "rank"))
	if fresh+replaced == 0 {
		line = fmt.Sprintf("Nothing to write: all %s for %s are there", quantity.Count(len(list), "file"), s.Model)
	}
	if moved > 0 {
		why = append([]string{quantity.Count(moved, "token") + " cannot get the planned experts by this bias; the " +
			"files hold what the router picks"}, why...)
	}
	return Answer{Verdict: Complete, Line: line + serve, Numbers: []Number{}, Caveats: []Caveat{},
		Reasons: append([]string{}, reasons(why)...),
		Basis: fmt.Sprintf("%d new, %d replaced · %s · %s, %s, plan %s", fresh, replaced, quantity.Bytes(float64(bytes)),
			s.DType, s.Mode, asked),
		Next: []Step{{"Check it.", "moebalance logits verify " + launch.Quote([]string{dir})}}}
}
