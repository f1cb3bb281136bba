package main

import (
	"embed"
	"strings"

	"github.com/spf13/cobra"
)

//go:embed help
var help embed.FS

// helpWidth is the most columns of a line of help.
const helpWidth = "100"

// command is a verb with its text of help, a file: the line of its use, a line that says what it
// is for, the description, and after "Examples:" commands that run as they stand.
func command(file string, args cobra.PositionalArgs, run func(*cobra.Command, []string) error) *cobra.Command {
	text, err := help.ReadFile("help/" + file + ".txt")
	if err != nil {
		panic(err) // the program was put together wrongly
	}
	use, rest, _ := strings.Cut(string(text), "\n")
	short, rest, _ := strings.Cut(rest, "\n\n")
	long, examples, _ := strings.Cut(rest, "\nExamples:\n")
	c := &cobra.Command{Use: use, Short: short, Long: strings.Trim(long, "\n"),
		Example: strings.TrimRight(examples, "\n"), Args: args, RunE: run, Annotations: map[string]string{}}
	c.Flags().SortFlags = false // help lists them in the order of their definition
	c.SetUsageTemplate(strings.ReplaceAll(c.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped "+helpWidth))
	return c
}
