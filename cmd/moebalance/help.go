package main

import (
	"embed"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/router"
)

//go:embed help
var help embed.FS

// helpWidth is the most columns of a line of help.
const helpWidth = "100"

// verb is a command with its text of help, a file: the line of its use, a line that says what it
// is for, the description, and after "Examples:" commands that run as they stand. Its flags are the
// fields of the options, a pointer to a struct or nil.
func verb(file string, args cobra.PositionalArgs, options any, run func(*cobra.Command, []string) error) *cobra.Command {
	text, err := help.ReadFile("help/" + file + ".txt")
	if err != nil {
		panic(err) // the program was put together wrongly
	}
	use, rest, _ := strings.Cut(string(text), "\n")
	short, rest, _ := strings.Cut(rest, "\n\n")
	long, examples, _ := strings.Cut(rest, "\nExamples:\n")
	c := &cobra.Command{Use: use, Short: short, Long: strings.Trim(long, "\n"),
		Example: strings.TrimRight(examples, "\n"), Args: args, RunE: run, Annotations: map[string]string{}}
	c.Flags().SortFlags = false // help lists them in the order of the fields
	if options != nil {
		flags.Bind(c, options, func(flag string) string { return usageOf(strings.ReplaceAll(file, "-", " "), flag) })
	}
	for name, values := range map[string][]string{"model": router.ModelNames(), "method": methodNames(),
		"metric": metrics.Names()} {
		if c.Flags().Lookup(name) != nil {
			flags.Complete(c, name, values...)
		}
	}
	c.SetUsageTemplate(strings.ReplaceAll(c.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped "+helpWidth))
	return c
}

// usageOf is the line of help for a flag of a verb: the verb's own, of its group, or of all.
func usageOf(verb, flag string) string {
	text, err := help.ReadFile("help/flags.txt")
	if err != nil {
		panic(err) // the program was put together wrongly
	}
	for {
		_, found, ok := strings.Cut(string(text), "\n"+strings.TrimPrefix(verb+" --"+flag+": ", " "))
		if ok {
			usage, _, _ := strings.Cut(found, "\n")
			return usage
		}
		if verb == "" {
			panic("help/flags.txt has no --" + flag)
		}
		verb = verb[:max(0, strings.LastIndex(verb, " "))]
	}
}
