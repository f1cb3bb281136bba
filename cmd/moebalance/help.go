package main

import (
	"embed"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/cmd/internal/target"
)

//go:embed help
var help embed.FS

// helpWidth is the most columns of a line of help.
const helpWidth = 100

// command is a verb with its text of help, a file: the line of its use, a line that says what it is for, the
// description, after "Tables:" their names, after "Examples:" commands that run as they stand, and after "Flags:" what
// each is for. Its flags are the fields of the options, a pointer to a struct that runs or answers, or nil.
func command(file string, options any, args cobra.PositionalArgs) *cobra.Command {
	use, rest, _ := strings.Cut(helpText(file), "\n")
	short, rest, _ := strings.Cut(rest, "\n\n")
	rest, _, _ = strings.Cut(rest, "\nFlags:\n")
	long, examples, _ := strings.Cut(rest, "\nExamples:\n")
	c := &cobra.Command{Use: use, Short: short, Long: strings.Trim(long, "\n"),
		Example: strings.TrimRight(examples, "\n"), Args: args}
	c.Flags().SortFlags = false // help lists them in the order of the fields
	switch o := options.(type) {
	case nil:
		return c
	case answering:
		c.RunE = running(func(c call) error { return show(c, o, tablesOf(c.Long)) })
	case interface{ run(c call) error }:
		c.RunE = running(o.run)
	}
	flags.Bind(c, options, func(flag string) string { return usageOf(file, flag) }, parsers...)
	target.Guard(c, wrote)
	return c
}

// tablesOf are the names of tables in a text of help: "Tables: layers, gain" → layers, gain.
func tablesOf(help string) []string {
	_, names, _ := strings.Cut(help, "\nTables: ")
	return strings.Fields(strings.ReplaceAll(names, ",", " "))
}

func running(run func(call) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error { return run(call{c, args}) }
}

// usageOf is the line of help for a flag: in the file of its verb, of the verb's group, or of the program.
func usageOf(file, flag string) string {
	group, _, _ := strings.Cut(file, "-")
	for _, name := range []string{file, group, "moebalance"} {
		if _, usage, found := strings.Cut(helpText(name), "\n  --"+flag+": "); found {
			usage, _, _ = strings.Cut(usage, "\n")
			return usage
		}
	}
	panic("no file of help has --" + flag)
}

func helpText(file string) string {
	text, err := help.ReadFile("help/" + file + ".txt")
	if err != nil {
		panic(err) // the program was put together wrongly
	}
	return string(text)
}
