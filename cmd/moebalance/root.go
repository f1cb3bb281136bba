package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router/quantity"
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
}

func (e *codeError) Error() string { return e.err.Error() }
func (e *codeError) Unwrap() error { return e.err }

// usagef is a usage error.
func usagef(format string, args ...any) error {
	return &codeError{exitUsage, fmt.Errorf(format, args...)}
}

// withCode gives err the exit code; nil stays nil.
func withCode(code int, err error) error {
	if err == nil {
		return nil
	}
	return &codeError{code, err}
}

// interruptible is a context that the first signal to end the program cancels. The
// second signal ends the program at once.
func interruptible() context.Context {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, stop)
	return ctx
}

// run is the whole program with its streams handed in; it returns the exit
// code. Results go to stdout, everything else to stderr.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := rootCmd()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	if text := err.Error(); text != "" {
		fmt.Fprintf(stderr, "moebalance: %s\n", text)
	}
	return exitCode(ctx, err)
}

// exitCode maps an error to the exit code: its own, or that of its kind.
func exitCode(ctx context.Context, err error) int {
	var coded *codeError
	if errors.As(err, &coded) {
		return coded.code
	}
	for _, kind := range []struct {
		is   error
		code int
	}{
		{target.ErrRefused, exitUsage}, {source.ErrUsage, exitUsage}, {counts.ErrOptions, exitUsage}, {nsys.ErrCounts, exitUsage}, {nsys.ErrSteps, exitUsage}, {logits.ErrSpec, exitUsage},
		{source.ErrNotComparable, exitNotComparable}, {nsys.ErrNotOneRun, exitNotComparable},
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
	root := command("moebalance", cobra.ArbitraryArgs, needsVerb) // which says what is wrong with the arguments
	root.Version, root.SilenceUsage, root.SilenceErrors = build(), true, true
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usagef("%s: %s; see '%s --help'", c.Name(), goNumberError.ReplaceAllString(err.Error(), "want a number"), c.CommandPath())
	})
	root.AddCommand(verbs()...)
	root.AddCommand(topics()...)
	target.Guard(root, targetRules())
	return root
}

// goNumberError is how Go words a number that cannot be read.
var goNumberError = regexp.MustCompile(`strconv\.\w+: parsing "(?:[^"\\]|\\.)*": [\w ]+`)

//go:embed help
var help embed.FS

// command is a verb with its file in help: the line of its use, a line that says what
// it is for, the description, and after "Examples:" commands that run as they stand.
func command(file string, args cobra.PositionalArgs, run func(*cobra.Command, []string) error) *cobra.Command {
	text, err := help.ReadFile("help/" + file + ".txt")
	if err != nil {
		panic(err) // the program was put together wrongly
	}
	use, rest, _ := strings.Cut(string(text), "\n")
	short, rest, _ := strings.Cut(rest, "\n\n")
	long, examples, _ := strings.Cut(rest, "\nExamples:\n")
	return &cobra.Command{Use: use, Short: short, Long: strings.TrimSpace(long), Example: strings.TrimRight(examples, "\n"), Args: args, RunE: run}
}

// verbs lists the commands in the order of a first use; help sorts them by name.
func verbs() []*cobra.Command {
	return []*cobra.Command{
		quickstartCmd(),
		logitsCmd(),
		benchCmd(),
		profileCmd(),
		hookCmd(),
		traceCmd(),
		countsCmd(),
		placeCmd(),
		compareCmd(),
		reportCmd(),
		workloadCmd(),
		modelsCmd(),
	}
}

// needsVerb is the error of a command that only groups verbs; it lists them.
func needsVerb(c *cobra.Command, args []string) error {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	if len(args) > 0 {
		hint := ""
		c.SuggestionsMinimumDistance = 2 // letters apart
		if near := c.SuggestionsFor(args[0]); len(near) > 0 {
			hint = fmt.Sprintf("; did you mean %q?", near[0])
		}
		return usagef("unknown verb %q for '%s': want one of %s%s", args[0], c.CommandPath(), strings.Join(names, ", "), hint)
	}
	return usagef("'%s' needs a verb: one of %s; see '%s --help'", c.CommandPath(), strings.Join(names, ", "), c.CommandPath())
}

// argCount checks the number of positional arguments and says what they are.
// most < 0 means any number.
func argCount(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < least || (most >= 0 && len(args) > most) {
			return usagef("%s: want %s, have %s; see '%s --help'", c.Name(), what, quantity.Count(len(args), "argument"), c.CommandPath())
		}
		return nil
	}
}
