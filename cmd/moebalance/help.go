package main

import (
	"embed"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/router"
)

//go:embed help
var help embed.FS

// yields is the annotation of the verbs whose results the flags of the root show.
const yields = "moebalance-yields"

// helpWidth is the most columns of a line of help.
const helpWidth = 100

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
		flags.Bind(c, c.Flags(), options, func(flag string) string { return usageOf(strings.ReplaceAll(file, "-", " "), flag) })
	}
	for name, values := range map[string]func() []string{"model": router.ModelNames, "method": methodNames,
		"metric": metrics.Names} {
		if c.Flags().Lookup(name) != nil {
			flags.Complete(c, name, func(*cobra.Command) []string { return values() })
		}
	}
	c.SetUsageTemplate(strings.NewReplacer(".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", helpWidth),
		".HasAvailableInheritedFlags", fmt.Sprintf("(index .Annotations %q)", yields)).Replace(c.UsageTemplate()))
	return c
}

// usages are the lines of help for flags, by "verb --flag".
var usages = sync.OnceValue(func() map[string]string {
	text, err := help.ReadFile("help/flags.txt")
	if err != nil {
		panic(err) // the program was put together wrongly
	}
	lines := map[string]string{}
	for line := range strings.Lines(string(text)) {
		flag, usage, _ := strings.Cut(strings.TrimSpace(line), ": ")
		lines[flag] = usage
	}
	return lines
})

// usageOf is the line of help for a flag of a verb: the verb's own, of its group, or of all.
func usageOf(verb, flag string) string {
	for {
		if usage, ok := usages()[strings.TrimSpace(verb+" --"+flag)]; ok {
			return usage
		}
		if verb == "" {
			panic("help/flags.txt has no --" + flag)
		}
		verb = verb[:max(0, strings.LastIndex(verb, " "))]
	}
}
