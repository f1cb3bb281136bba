package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/bench"
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
	error
	code int
}

func (e *codeError) Unwrap() error { return e.error }

// failf is an error with an exit code, usagef a usage error.
func failf(code int, format string, args ...any) error {
	return withCode(code, fmt.Errorf(format, args...))
}
func usagef(format string, args ...any) error { return failf(exitUsage, format, args...) }

// usage makes err a usage error; nil stays nil.
func usage(err error) error { return withCode(exitUsage, err) }

// withCode gives err the exit code; nil stays nil.
func withCode(code int, err error) error {
	if err == nil {
		return nil
	}
	return &codeError{err, code}
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
	c, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	if _, coded := errors.AsType[*codeError](err); !coded && errors.Is(err, context.Canceled) {
		err = failf(exitInterrupted, "interrupted; run it again")
	}
	fmt.Fprintf(stderr, "%s: %s\n", c.CommandPath(), shown.Error(err))
	return exitCode(ctx, err)
}

// exitCode maps an error to the exit code: its own, or the code of its kind.
func exitCode(ctx context.Context, err error) int {
	is := func(kind error) bool { return errors.Is(err, kind) }
	switch coded, ok := errors.AsType[*codeError](err); {
	case ok:
		return coded.code
	case slices.ContainsFunc([]error{target.ErrRefused, source.ErrUsage, counts.ErrOptions, router.ErrModel,
		trace.ErrCounts, trace.ErrArm, logits.ErrSpec, bench.ErrExists, bench.ErrTaken}, is):
		return exitUsage
	case is(source.ErrNotComparable) || is(trace.ErrNotOneRun):
		return exitNotComparable
	case ctx.Err() != nil:
		return exitInterrupted
	}
	return exitFailed
}

// verbs are the commands by their files of help, "logits-list" the verb list of the verb logits. A group of help
// reaches down to the next. What has no options is a page of help that belongs to no verb.
var verbs = []struct {
	group, file string
	options     func() any
	args        cobra.PositionalArgs
}{
	{"Run an engine", "bench", fresh[benchOptions], cobra.ArbitraryArgs},
	{"", "bench-dataset", fresh[datasetOptions], none}, {"", "hook", fresh[hookOptions], none},
	{"", "profile", fresh[profileOptions], argCount(1, -1, "a command after --")},
	{"", "workload", fresh[workloadOptions], none},
	{"Read what engines recorded", "trace", fresh[traceOptions], some}, {"", "compare", fresh[compareOptions], some},
	{"", "counts", fresh[countsOptions], some}, {"", "report", fresh[reportOptions], some},
	{"Balance", "logits", fresh[group], cobra.ArbitraryArgs}, {"", "logits-generate", fresh[generateOptions], none},
	{"", "logits-verify", fresh[cacheOptions], one}, {"", "logits-list", fresh[cacheOptions], one},
	{"", "logits-plans", fresh[plansOptions], none}, {"", "place", fresh[placeOptions], some},
	{"", "models", fresh[modelsOptions], cobra.ArbitraryArgs},
	{"Start", "quickstart", fresh[quickstartOptions], none}, {"", "campaigns", topic, none}, {"", "numbers", topic, none},
	{"", "formats", topic, none}, {"", "exit-codes", topic, none}, {"", "proof", topic, none}, {"", "loader", topic, none},
}

func fresh[T any]() any { return new(T) }

// topic is a page of help that belongs to no verb.
func topic() any { return nil }

// group is the options of a command that only groups verbs.
type group struct{}

// run says which verbs there are. Pages of help are no verbs, and may be meant.
func (*group) run(c call) error {
	var verbs, names []string
	for _, sub := range c.Commands() {
		if names = append(names, sub.Name()); sub.Runnable() && !sub.Hidden {
			verbs = append(verbs, sub.Name())
		}
	}
	if len(c.args) == 0 {
		return usagef("no verb: want %s", strings.Join(verbs, ", "))
	}
	return usagef("unknown verb %q: want %s%s", c.args[0], strings.Join(verbs, ", "), router.Near(c.args[0], names))
}

func rootCmd() *cobra.Command {
	root := command("moebalance", new(group), cobra.ArbitraryArgs)
	root.Version, root.SilenceUsage, root.SilenceErrors = build(), true, true
	root.SetFlagErrorFunc(flagError)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d",
		helpWidth)))
	last := ""
	for _, v := range verbs {
		c := command(v.file, v.options(), v.args)
		if v.group != "" {
			last = v.group
			root.AddGroup(&cobra.Group{ID: last, Title: last + ":"})
		}
		within, _, _ := strings.Cut(v.file, "-")
		if parent, _, _ := root.Find([]string{within}); parent != root {
			parent.AddCommand(c)
			continue
		}
		if c.Runnable() {
			c.GroupID = last
		}
		root.AddCommand(c)
	}
	root.AddCommand(&cobra.Command{Use: "version", Hidden: true, Args: none, Example: "  moebalance version",
		Run: func(c *cobra.Command, _ []string) { fmt.Fprintln(c.OutOrStdout(), "moebalance", build()) }})
	root.SetCompletionCommandGroupID("Start")
	return root
}

// flagError says what is wrong with a flag, and what may have been meant.
func flagError(c *cobra.Command, err error) error {
	text := err.Error()
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		text += router.Near("--"+cmp.Or(unknown.GetSpecifiedShortnames(), unknown.GetSpecifiedName()), names)
	}
	return usagef("%s; see '%s --help'", text, c.CommandPath())
}

// none, one and some are how many arguments a verb takes.
var none, one, some = argCount(0, 0, "no argument"), argCount(1, 1, "one folder"), argCount(1, -1, "at least one input")

// argCount checks the number of arguments, any where most < 0, and says how many are wanted.
func argCount(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) >= least && (most < 0 || len(args) <= most) {
			return nil
		}
		return usagef("want %s, have %s; see '%s --help'", what, quantity.Count(len(args), "argument"), c.CommandPath())
	}
}
