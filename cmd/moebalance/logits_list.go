package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router/quantity"
)

func logitsListCmd() *cobra.Command {
	var out resultFlags
	c := &cobra.Command{
		Use:   "list FOLDER",
		Short: "what a cache folder holds: sizes and balance",
		Long: `list reads what the entries of a cache folder say of themselves and the experts
they hold, but not their logits, and shows size and balance per batch size. It
proves nothing: that is what verify does. Balance is over all ranks together,
beside the floor that indivisible slots allow; it is undefined while ranks are
missing.`,
		Example: `  moebalance logits list /tmp/logits
  moebalance logits list --format csv /tmp/logits`,
		Args: argCount(1, 1, "one cache folder"),
		RunE: func(c *cobra.Command, args []string) error { return listCache(c, args[0], &out) },
	}
	out.bind(c)
	return c
}

// listResult is the JSON of logits list.
type listResult struct {
	SchemaVersion int             `json:"schema_version"`
	Kind          string          `json:"kind"` // always "logits list"
	Balance       []listedBalance `json:"balance"`
	Bytes         int64           `json:"bytes"`
	Warnings      []string        `json:"warnings"`
}

type listedBalance struct {
	logits.BatchBalance
	Entries int    `json:"entries"`
	Bytes   int64  `json:"bytes"`
	Status  string `json:"status"`
}

func listCache(c *cobra.Command, dir string, out *resultFlags) error {
	if err := out.check(); err != nil {
		return err
	}
	show, stop := countBar(c.ErrOrStderr(), "entries")
	survey, err := logits.List(c.Context(), dir, show)
	stop()
	if err != nil {
		return err
	}
	return out.write(c, listDocument(dir, survey))
}

func listDocument(dir string, s logits.Survey) output.Document {
	result := listResult{SchemaVersion: 1, Kind: "logits list", Balance: []listedBalance{}, Warnings: []string{}}
	for _, e := range s.Entries {
		result.Bytes += e.Bytes
		if e.Err != nil {
			result.Warnings = append(result.Warnings, fmt.Sprintf("%s: %s", e.Path, e.Fault()))
		}
	}
	entries := 0
	for _, b := range s.Batches {
		entries += b.Entries
		result.Balance = append(result.Balance, listedBalance{
			BatchBalance: b.BatchBalance(), Entries: b.Entries, Bytes: b.Bytes, Status: balanceStatus(b),
		})
	}
	return output.Document{
		Headline: fmt.Sprintf("%s for %s in %s, %s", quantity.Count(entries, "entry"), quantity.Count(len(s.Batches), "batch size"), dir, output.Size(result.Bytes)),
		Tables:   []output.Table{balanceTable(s)}, Notes: result.Warnings, Value: result,
	}
}
