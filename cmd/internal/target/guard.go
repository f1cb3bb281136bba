package target

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/router/draft"
)

// ErrRefused is wrapped by the error about an output that cannot be written or that would destroy
// something.
var ErrRefused = errors.New("not written")

// guard holds what the outputs of a verb must not replace.
type guard struct {
	ours    func(path string) bool
	force   bool
	inputs  []string         // paths that words of the command line may mean
	outputs map[string]*File // by flag
}

// Guard checks the outputs of a verb before it runs, and each file again before it takes its place. An
// output never is an input. An existing file is replaced only if it is ours, written by this program, or
// with --force, a flag that verbs with outputs get.
func Guard(c *cobra.Command, ours func(path string) bool) {
	g := &guard{ours: ours, outputs: map[string]*File{}}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		field, _ := flags.Field(f)
		if o, ok := field.(interface{ output() *File }); ok {
			g.outputs["--"+f.Name] = o.output()
		}
	})
	if len(g.outputs) > 0 {
		c.PreRunE = g.before
		c.Flags().BoolVar(&g.force, "force", false, "let outputs replace existing files, but never an input")
	}
}

func (f *File) output() *File { return f }

// before checks the outputs against all other words of the command line.
func (g *guard) before(c *cobra.Command, args []string) error {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if _, texts := flags.Field(f); g.outputs["--"+f.Name] == nil {
			args = append(args, texts...)
		}
	})
	g.add("", args...)
	for flag, o := range g.outputs {
		o.guard, o.flag = g, flag
	}
	for _, flag := range slices.Sorted(maps.Keys(g.outputs)) {
		if err := g.outputs[flag].check(); err != nil {
			return err
		}
	}
	return nil
}

// separators stand between a path and what is around it in a word: --flag=PATH, A,B,
// /host:/container, @PATH, and whole command lines in quotes.
const separators = "=,:@;<>'\"` \t\n"

// add takes the paths that words may mean, relative ones from a folder, and the files that match them:
// "--log=*.txt" → "--log=*.txt", "--log", "*.txt", "a.txt", "b.txt".
func (g *guard) add(dir string, words ...string) {
	for _, word := range words {
		parts := strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune(separators, r) })
		_, value, _ := strings.Cut(word, "=")
		for _, part := range append(parts, word, value) { // a path may have separators in it
			if part != "" && !filepath.IsAbs(part) {
				part = filepath.Join(dir, part)
			}
			matches, _ := filepath.Glob(part)
			g.inputs = append(append(g.inputs, matches...), part)
		}
	}
}

// same reports two names of one file, whether it is there or to come.
func same(a, b string) bool {
	one, _ := os.Stat(a)
	other, _ := os.Stat(b)
	return os.SameFile(one, other) || draft.Place(a) == draft.Place(b)
}

// Inputs refuses the file if words of a command that ran in a folder mean it.
func (f *File) Inputs(dir string, words ...string) error {
	f.guard.add(dir, words...)
	return f.check()
}

// check refuses a target that is an input or another output, that cannot be written, or that must not be
// lost.
func (f *File) check() error {
	if f.guard == nil || f.Path == "" {
		return nil // a file in a store of ours, or none
	}
	there, err := os.Stat(f.Path)
	folder, other := filepath.Dir(draft.Place(f.Path)), ""
	for flag, o := range f.guard.outputs {
		if flag != f.flag && o.Path != "" && same(o.Path, f.Path) {
			other = flag
		}
	}
	isInput := func(in string) bool { // it, or a folder that the file is in
		return in != "" && (same(in, f.Path) || err == nil && strings.HasPrefix(folder+"/", draft.Place(in)+"/"))
	}
	refusal := func(format string, args ...any) error {
		return fmt.Errorf("%s: %w: "+format, append([]any{f.flag, ErrRefused}, args...)...)
	}
	switch denied := unix.Access(folder, unix.W_OK); {
	case err == nil && there.IsDir() && !f.folder:
		return refusal("want a file, but %q is a folder", f.Path)
	case err == nil && !there.IsDir() && f.folder:
		return refusal("want a folder, but %q is a file", f.Path)
	case f.folder || err == nil && !there.Mode().IsRegular(): // a pipe or a device loses nothing
		return nil
	case other != "":
		return refusal("%q is the output of %s: choose another file", f.Path, other)
	case slices.ContainsFunc(f.guard.inputs, isInput):
		return refusal("%q is an input: choose another file", f.Path)
	case denied != nil:
		return refusal("no folder %q that can be written in: %v", folder, denied)
	case there != nil && there.Size() > 0 && !f.guard.force && !f.guard.ours(f.Path):
		return refusal("%q exists, and does not show that this program wrote it: choose another file, or replace it with "+
			"--force", f.Path)
	}
	return nil
}
