// Package manual makes the pages of help of verbs: what a verb does, examples, and its flags in
// groups. Of a verb with many flags a page shows what is used most, on two screens at most;
// --help-all shows the rest.
package manual

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/moebalance/moebalance/cmd/internal/output"
)

// Command is a verb with its page, a file of texts: the line of its use, a line that says
// what it is for, the description, of which the first paragraph is shown first, and after
// "Examples:" commands that run as they stand. first are the flags that are shown first, none for
// all at once.
func Command(texts fs.FS, file, first string, args cobra.PositionalArgs,
	run func(*cobra.Command, []string) error) *cobra.Command {
	text, err := fs.ReadFile(texts, file)
	if err != nil {
		panic(err) // the program was put together wrongly
	}
	use, rest, _ := strings.Cut(string(text), "\n")
	short, rest, _ := strings.Cut(rest, "\n\n")
	long, examples, _ := strings.Cut(rest, "\nExamples:\n")
	c := &cobra.Command{Use: use, Short: short, Long: strings.Trim(long, "\n"),
		Example: strings.TrimRight(examples, "\n"), Args: args, RunE: run,
		Annotations: map[string]string{firstKey: first}}
	c.Flags().SortFlags = false // help lists them in the order of their definition
	c.Flags().BoolFunc(AllFlag, "all there is to know of this verb", func(string) error {
		c.InitDefaultHelpFlag()
		return c.Flags().Set("help", "true")
	})
	return c
}

// The headings of flags in help: a verb's own come first, and outputs last.
const (
	OwnSection    = "Flags"
	OutputSection = "Output"
)

// Annotations of flags and commands.
const (
	sectionKey = "moebalance-section" // the heading of a flag
	firstKey   = "moebalance-first"   // the flags of a verb that Show shows first
)

// AllFlag is the flag that shows all there is to know of a verb.
const AllFlag = "help-all"

// Width is the most columns of a page.
const Width = 100

// Section gives the flags that were added since the last call a heading in help.
func Section(c *cobra.Command, heading string) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Annotations[sectionKey] == nil && f.Name != AllFlag {
			_ = c.Flags().SetAnnotation(f.Name, sectionKey, []string{heading})
		}
	})
}

// SectionOf is the heading that a flag is below, OwnSection where it has none.
func SectionOf(f *pflag.Flag) string {
	if named := f.Annotations[sectionKey]; named != nil {
		return named[0]
	}
	return OwnSection
}

// flagGroup is what help lists under a heading.
type flagGroup struct {
	heading string
	flags   []*pflag.Flag
}

// flagGroups are the flags of a command in the order of help.
func flagGroups(c *cobra.Command) (groups []flagGroup) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		heading := SectionOf(f)
		if (f.Name == "help" || f.Name == "force") && c.Flags().Lookup("format") != nil {
			heading = OutputSection
		}
		at := slices.IndexFunc(groups, func(g flagGroup) bool { return g.heading == heading })
		if at < 0 {
			at, groups = len(groups), append(groups, flagGroup{heading: heading})
		}
		groups[at].flags = append(groups[at].flags, f)
	})
	rank := map[string]int{OwnSection: -1, OutputSection: 1}
	slices.SortStableFunc(groups, func(a, b flagGroup) int { return cmp.Compare(rank[a.heading], rank[b.heading]) })
	return groups
}

// page is a page of help in the making.
type page struct {
	strings.Builder
	width int
}

// Show prints all there is to know about a command, or of a verb with many flags what to
// know first.
func Show(c *cobra.Command, _ []string) {
	out := c.Root().OutOrStdout()
	h := &page{width: Width}
	if screen := output.ScreenOf(out, os.Getenv); screen.Width > 0 {
		h.width = min(h.width, screen.Width)
	}
	names := strings.Fields(c.Annotations[firstKey])
	if c.Flags().Changed(AllFlag) {
		names = nil
	}
	h.describe(c, len(names) > 0)
	if c.Runnable() { // else a topic
		h.verbs(c)
		h.flags(c, names)
	}
	fmt.Fprint(out, h)
}

// describe says what a command does, how it is called, and shows examples.
func (h *page) describe(c *cobra.Command, brief bool) {
	long, examples := c.Long, c.Example
	if brief {
		long, _, _ = strings.Cut(long, "\n\n")
		lines := strings.SplitAfter(examples, "\n")
		examples = strings.TrimSuffix(strings.Join(lines[:min(3, len(lines))], ""), "\n")
	}
	if c.Runnable() && h.width < Width {
		long = flowed(long, h.width)
	}
	fmt.Fprintf(h, "%s\n", long)
	if c.Runnable() {
		fmt.Fprintf(h, "\nUsage:\n  %s\n", c.UseLine())
	}
	if examples != "" {
		fmt.Fprintf(h, "\nExamples:\n%s\n", examples)
	}
	if strings.Contains(examples, "testdata/") {
		h.WriteString("  (testdata is a folder of the source code, https://github.com/moebalance/moebalance)\n")
	}
}

// flowed breaks the paragraphs of a text anew, but those with indented lines.
func flowed(text string, width int) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if !strings.Contains("\n"+p, "\n ") {
			paragraphs[i] = output.Broken(strings.ReplaceAll(p, "\n", " "), width, "")
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// verbs lists those of a command, and the topics.
func (h *page) verbs(c *cobra.Command) {
	list := func(title string, is func(*cobra.Command) bool) {
		for _, sub := range c.Commands() {
			if is(sub) {
				h.item(&title, sub.Name(), 12, sub.Short)
			}
		}
	}
	for _, g := range append(c.Groups(), &cobra.Group{Title: "Verbs:"}) {
		list(g.Title, func(sub *cobra.Command) bool { return sub.GroupID == g.ID && sub.IsAvailableCommand() })
	}
	list("Topics ('moebalance help TOPIC'):", (*cobra.Command).IsAdditionalHelpTopicCommand)
}

// flags lists those of the names with what they do, and names the others. Without names it lists all.
func (h *page) flags(c *cobra.Command, first []string) {
	var more []string
	for _, g := range flagGroups(c) {
		title := g.heading + ":"
		for _, f := range g.flags {
			name, text := FlagText(c, f)
			switch {
			case f.Name == AllFlag:
			case len(first) == 0:
				h.item(&title, name, 24, text)
			case slices.Contains(first, f.Name):
				text, _, _ = strings.Cut(text, "; ") // what follows is detail
				h.item(&title, name, 24, text)
			default:
				more = append(more, "--"+f.Name)
			}
		}
	}
	if more != nil {
		fmt.Fprintf(h, "\nMore, explained by '%s --%s':\n%s\n", c.CommandPath(), AllFlag,
			output.Broken("  "+strings.Join(more, " "), h.width, "  "))
	}
}

// item is a line of a list: a name, and what it is from a column on. The first has the title above it.
func (h *page) item(title *string, name string, column int, text string) {
	if *title != "" {
		fmt.Fprintf(h, "\n%s\n", *title)
		*title = ""
	}
	indent := strings.Repeat(" ", column+3)
	if len(name) > column {
		name += "\n" + indent[1:]
	}
	fmt.Fprintf(h, "%s\n", output.Broken(fmt.Sprintf("  %-*s %s", column, name, text), h.width, indent))
}

// quotedName is the metavariable of a flag in the text of its use; most are plain words.
var (
	quotedName = regexp.MustCompile("`([^`]*)`")
	plainWord  = regexp.MustCompile("^[A-Z]{2,}$")
)

// valueNames are the metavariables of flags that name none, by type.
var valueNames = map[string]string{"string": "NAME", "stringArray": "TEXT", "stringSlice": "NAMES", "int": "N",
	"uint64": "N", "float64": "NUMBER", "float32": "NUMBER", "duration": "TIME", "percent": "PERCENT"}

// FlagText is what help says of a flag. The metavariable stands beside the name alone: in the text it
// is a word.
func FlagText(c *cobra.Command, f *pflag.Flag) (name, text string) {
	name, text = "--"+f.Name, f.Usage
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	value := valueNames[f.Value.Type()]
	if at := quotedName.FindStringSubmatchIndex(text); at != nil {
		value = text[at[2]:at[3]]
		word := value
		switch {
		case at[0] == 0 && strings.HasPrefix(text[at[1]:], ": "):
			word, text = "", strings.Replace(text, "`: ", "`", 1)
		case plainWord.MatchString(value):
			word = strings.NewReplacer("dir", "folder", "url", "address").Replace(strings.ToLower(value))
		}
		text = text[:at[0]] + word + text[at[1]:]
	}
	if value != "" {
		name += " " + value
	}
	if f.Name == "table" {
		if names, ok := c.GetFlagCompletionFunc(f.Name); ok {
			tables, _ := names(c, nil, "")
			text += ": " + strings.Join(tables, ", ")
		}
	}
	if preset := f.DefValue; !slices.Contains([]string{"", "0", "-1", "0s", "false", "[]"}, preset) {
		text += " (default " + strings.Trim(strings.Replace(preset, "m0s", "m", 1), "[]") + ")"
	}
	return name, text
}
