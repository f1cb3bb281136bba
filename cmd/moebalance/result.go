package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/cmd/internal/target"
)

// defaultThreshold is the imbalance above which load and time are flagged.
const defaultThreshold = 0.10

// resultFlags are the flags of every verb that yields data.
type resultFlags struct {
	format string
	table  string
	file   target.File
}

func (f *resultFlags) bind(c *cobra.Command) {
	c.Flags().StringVar(&f.format, "format", "text", "output format: text, json, csv or md")
	c.Flags().StringVar(&f.table, "table", "", "print this table only (csv: default the first)")
	f.file.Bind(c, "output", "o", "write the result to this `FILE` instead of stdout")
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(output.Formats, cobra.ShellCompDirectiveNoFileComp))
}

// check finds a bad flag before any work is done.
func (f *resultFlags) check() error {
	if _, err := output.ParseFormat(f.format); err != nil {
		return withCode(exitUsage, fmt.Errorf("--format: %w", err))
	}
	return nil
}

// write renders the document to stdout, or to the file.
func (f *resultFlags) write(c *cobra.Command, d output.Document) error {
	format, err := output.ParseFormat(f.format)
	if err != nil {
		return withCode(exitUsage, err)
	}
	render := func(w io.Writer) error {
		err := output.Write(w, format, f.table, d)
		if errors.Is(err, output.ErrNoTable) {
			return withCode(exitUsage, fmt.Errorf("--table: %w", err))
		}
		return err
	}
	if f.file.Path == "" {
		err = render(c.OutOrStdout())
	} else {
		err = f.file.Write(render)
	}
	if err == nil && format == output.CSV {
		for i, note := range d.Notes {
			fmt.Fprintf(c.ErrOrStderr(), "[%d] %s\n", i+1, note)
		}
	}
	return err
}
