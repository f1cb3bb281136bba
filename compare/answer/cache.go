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
		if e.Err == nil {
			continue
		}
		if bad++; bad <= 3 {
			a.Reasons = append(a.Reasons, sentence(e.Path+": "+e.Fault()))
		}
	}
	n := len(v.Entries)
	a.Basis = fmt.Sprintf("%d of %s exact", n-bad, quantity.Count(n, "file"))
	switch {
	case bad > 0:
		a.Verdict, a.Line = Failed, fmt.Sprintf("%d of %s in the cache failed.", bad, quantity.Count(n, "file"))
		a.Next = append(a.Next,
			Step{"Write the cache again.", "moebalance logits generate --model MODEL --ep RANKS --cache " +
				launch.Quote([]string{dir})})
	case v.AtFloor() == len(v.Balance):
		a.Line = fmt.Sprintf("All %s are exact and as balanced as can be.", quantity.Count(n, "file"))
		if n == 1 {
			a.Line = "The file is exact and as balanced as can be."
		}
	default:
		a.Line = fmt.Sprintf("All %s are exact; %d of %s are as balanced as can be.", quantity.Count(n, "file"),
			v.AtFloor(), quantity.Count(len(v.Balance), "batch size"))
	}
	return a
}
