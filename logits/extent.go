package logits

import (
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/plan"
)

// AnyTokens is the batch size of a periodic entry, which serves any number of tokens:
// token t of layer l takes row (t + l·Period) mod Rows.
const AnyTokens = router.NoID

// extent is how many tokens an entry is for, and how many rows it has: one for each
// token, or those of the plan's table.
type extent struct {
	tokens       int // of every rank; AnyTokens
	rows, period int // period is 0 for an entry of one batch size
}

// extent is that of an entry for so many tokens. Only plans for any number of them
// have periodic entries, see checkEntry.
func (s Spec) extent(p plan.Plan, tokens int) extent {
	if table, ok := p.(plan.Periodic); ok && tokens == AnyTokens {
		return extent{AnyTokens, table.Rows(), table.Period()}
	}
	return extent{tokens: tokens, rows: tokens}
}

// anyTokens stands in the metadata of periodic entries for the number of tokens.
const anyTokens = "any"
