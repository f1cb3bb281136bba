package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
	"github.com/moebalance/moebalance/router/shown"
)

// The exit codes, as --help and the README list them.
const (
	exitDone          = 0   // done, and every gate that was asked for passed
	exitFailed        = 1   // failed: unreadable, corrupt, unsupported or internal error
	exitUsage         = 2   // usage error
	exitGate          = 3   // done, and a gate failed
	exitNotComparable = 4   // the arms are not comparable, or balance is not proved
	exitInconclusive  = 5   // no verdict where one was demanded
	exitInterrupted   = 130 // interrupted
)

// codeError is an error with an exit code of its own.
type codeError struct {
	code int
	err  error
	why  string // reasons that people who read the result have read already
}

func (e *codeError) Error() string { return e.err.Error() }
func (e *codeError) Unwrap() error { return e.err }

// usagef is a usage error.
func usagef(format string, args ...any) error { return usage(fmt.Errorf(format, args...)) }

// usage makes err a usage error; nil stays nil.
func usage(err error) error { return withCode(exitUsage, err) }

// withCode gives err the exit code; nil stays nil.
func withCode(code int, err error) error {
	if err == nil {
		return nil
	}
	return &codeError{code: code, err: err}
}

// cutKey is the key of the channel of a context that the second signal to end the program closes.
type cutKey struct{}

// interruptible is a context that the first signal to end the program cancels. The third ends the program at once.
func interruptible() context.Context {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		signals = append(signals, syscall.SIGHUP)
	}
	heard, cut := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(heard, signals...)
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), cutKey{}, cut))
	go func() {
		<-heard
		cancel()
		<-heard
		signal.Stop(heard)
		close(cut)
	}()
	return ctx
}

// run is the whole program with its streams handed in; it returns the exit
// code. Results go to stdout, everything else to stderr.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := rootCmd()
	root.SetArgs(append([]string{}, args...)) // of none, cobra would take the arguments of the process
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	strict(root)
	c, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	fmt.Fprintf(stderr, "%s: %s\n", c.CommandPath(), shown.Error(err))
	return exitCode(ctx, err)
}

// exitCode maps an error to the exit code: its own, or the code of its kind.
func exitCode(ctx context.Context, err error) int {
	var coded *codeError
	if errors.As(err, &coded) {
		return coded.code
	}
	for _, kind := range []struct {
		is   error
		code int
	}{
		{target.ErrRefused, exitUsage}, {output.ErrNoTable, exitUsage}, {source.ErrUsage, exitUsage},
		{counts.ErrOptions, exitUsage}, {router.ErrModel, exitUsage}, {trace.ErrCounts, exitUsage},
		{logits.ErrSpec, exitUsage},
		{source.ErrNotComparable, exitNotComparable}, {trace.ErrNotOneRun, exitNotComparable},
	} {
		if errors.Is(err, kind.is) {
			return kind.code
		}
	}
	if ctx.Err() != nil {
		return exitInterrupted
	}
	return exitFailed
}

func rootCmd() *cobra.Command {
	root := verb("moebalance", cobra.ArbitraryArgs, nil, noVerb)
	root.Version, root.SilenceUsage, root.SilenceErrors = build(), true, true
	root.SetFlagErrorFunc(flagError)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d",
		helpWidth)))
	for _, group := range []struct {
		title string
		verbs []*cobra.Command
	}{
		{"Run an engine", []*cobra.Command{benchCmd(), profileCmd(), hookCmd(), workloadCmd()}},
		{"Read what engines recorded", []*cobra.Command{traceCmd(), compareCmd(), countsCmd(), reportCmd()}},
		{"Balance", []*cobra.Command{logitsCmd(), placeCmd(), modelsCmd()}},
		{"Start", []*cobra.Command{quickstartCmd()}},
	} {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title + ":"})
		for _, c := range group.verbs {
			c.GroupID = group.title
			root.AddCommand(c)
		}
	}
	for _, topic := range []string{"campaigns", "numbers", "formats", "exit-codes", "proof", "loader"} {
		root.AddCommand(verb(topic, none, nil, nil)) // a page of help that belongs to no verb
	}
	root.AddCommand(&cobra.Command{Use: "version", Hidden: true, Args: none, Example: "  moebalance version",
		Run: func(c *cobra.Command, _ []string) { fmt.Fprintln(c.OutOrStdout(), "moebalance", build()) }})
	root.SetCompletionCommandGroupID("Start")
	return root
}

// strict makes cobra's own commands refuse what they do not know. It comes behind SetOut, whose stream the
// completion command keeps.
func strict(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "completion":
			c.Args, c.RunE = cobra.ArbitraryArgs, noVerb
			for _, shell := range c.Commands() {
				shell.Args = none
			}
		case "help":
			c.Args = func(_ *cobra.Command, args []string) error {
				switch of, rest, _ := root.Find(args); {
				case len(rest) == 0:
					return nil
				case of.HasSubCommands():
					return noVerb(of, rest)
				default:
					return usagef("want one verb, have %q, too", rest[0])
				}
			}
		}
	}
}

// noVerb is the error of a command that only groups verbs.
func noVerb(c *cobra.Command, args []string) error {
	var names, verbs []string // pages of help are no verbs, and may be meant
	for _, sub := range c.Commands() {
		if names = append(names, sub.Name()); sub.Runnable() && !sub.Hidden {
			verbs = append(verbs, sub.Name())
		}
	}
	wanted := "want " + strings.Join(verbs, ", ")
	if len(args) == 0 {
		return usagef("no verb: %s", wanted)
	}
	return usagef("unknown verb %q: %s%s", args[0], wanted, router.Near(args[0], names))
}

// flagError says what is wrong with a flag, and what may have been meant.
func flagError(c *cobra.Command, err error) error {
	text := err.Error()
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		text += router.Near("--"+cmp.Or(unknown.GetSpecifiedShortnames(), unknown.GetSpecifiedName()), names)
	case errors.As(err, &invalid):
		text = fmt.Sprintf("--%s: %v", invalid.GetFlag().Name, invalid.Unwrap())
		if have := strconv.Quote(invalid.GetValue()); !strings.Contains(text, have) && !strings.Contains(text,
			invalid.GetValue()+": ") { // a file that is wrong is named
			text += ", have " + have
		}
	}
	return usagef("%s; see '%s --help'", text, c.CommandPath())
}

// none takes no argument.
var none = argCount(0, 0, "no argument")

// argCount checks the number of positional arguments, any where most < 0, and says what they are.
func argCount(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) >= least && (most < 0 || len(args) <= most) {
			return nil
		}
		return usagef("want %s, have %s; see '%s --help'", what, quantity.Count(len(args), "argument"), c.CommandPath())
	}
}
