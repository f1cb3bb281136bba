package target

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
)

// RunsCommand is the annotation of a verb whose arguments are a command.
const RunsCommand = "moebalance-runs-command"

// Guard adds --force to the flags of all verbs, and returns what checks the outputs of a verb before
// it runs; each file is checked again before it takes its place. An output never is an input. An
// existing file is replaced only if it is ours, written by this program, or with --force.
func Guard(root *cobra.Command, ours func(path string) bool) func(*cobra.Command, []string) error {
	g := &guard{ours: ours, claims: map[string]*output{}}
	root.PersistentFlags().BoolVar(&g.force, "force", false, "let outputs replace existing files, but never an input")
	return func(c *cobra.Command, args []string) (err error) {
		_, command := c.Annotations[RunsCommand]
		var outputs []guarded
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if o, ok := f.Value.(guarded); ok {
				o.own().guard, outputs = g, append(outputs, o)
			} else if list, ok := f.Value.(pflag.SliceValue); ok && f.Changed {
				args = append(args, list.GetSlice()...)
			} else if f.Changed {
				args = append(args, f.Value.String())
			}
		})
		for _, word := range args {
			g.addWord(word, command)
		}
		for _, o := range outputs {
			if own := o.own(); own.Path != "" && err == nil {
				err = cmp.Or(g.claim(own.Path, own), o.check())
			}
		}
		return err
	}
}

type guard struct {
	ours   func(path string) bool
	force  bool
	inputs []string           // words of the command line that may be paths or patterns
	claims map[string]*output // by path in small letters: names that differ in case are one for some systems
}

// guarded is an output whose target the guard can judge.
type guarded interface {
	own() *output
	check() error
}

// separators stand between a path and what is around it in a word: --flag=PATH,
// A,B, /host:/container, @PATH, and whole command lines in quotes.
const separators = "=,:@;<>'\"` \t\n"

// addWord adds the paths that a word may mean: "--log=a.txt" → "--log=a.txt", "--log", "a.txt".
func (g *guard) addWord(word string, command bool) {
	parts := strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune(separators, r) })
	for rest, found := word, true; found; _, rest, found = strings.Cut(rest, "=") {
		parts = append(parts, rest) // a path with separators in it
	}
	for _, part := range parts {
		if program, err := exec.LookPath(part); command && err == nil {
			part = program
		}
		g.inputs = append(g.inputs, part)
	}
}

// Inputs adds the words of a command, of which relative paths begin in dir, to the
// inputs of the verb, and checks the file against them.
func (f *File) Inputs(dir string, words ...string) error {
	for _, word := range words {
		f.guard.addWord(word, true)
		if !filepath.IsAbs(word) {
			f.guard.inputs = append(f.guard.inputs, filepath.Join(dir, word))
		}
	}
	if f.Path == "" {
		return nil
	}
	return f.check()
}

// claim refuses a path that another output of the verb writes, or that lies in a folder that it keeps.
func (g *guard) claim(path string, o *output) error {
	key := strings.ToLower(real(path))
	for other, by := range g.claims {
		within := by.Keeps && strings.HasPrefix(key, other+"/")
		if by != o && (within || key == other && !(by.folder && o.folder)) {
			return o.refusal("%q is the output of %s, too: choose another name for one of them", path, by.flag)
		}
	}
	g.claims[key] = o
	return nil
}

// checkFile refuses a target that is an input, that cannot be written, or that must not be lost.
func (o *output) checkFile(path string) error {
	there, err := os.Stat(path)
	folder := filepath.Dir(linked(path))
	switch {
	case err == nil && there.IsDir():
		return o.refusal("want a file, but %q is a folder", path)
	case err == nil && !there.Mode().IsRegular():
		return nil // a pipe or a device loses nothing
	case slices.ContainsFunc(o.guard.inputs, func(in string) bool { return names(in, path) }):
		return o.refusal("%q is an input, which is never replaced: choose another file", path)
	case unix.Access(folder, unix.F_OK) != nil:
		return o.refusal("no folder %q to write %q in", filepath.Dir(path), filepath.Base(path))
	case unix.Access(folder, unix.W_OK) != nil:
		return &os.PathError{Op: "open", Path: path, Err: unix.Access(folder, unix.W_OK)}
	case there == nil || o.guard.ours(path):
		return nil
	case slices.ContainsFunc(o.guard.inputs, func(in string) bool { return holds(in, path) }):
		return o.refusal("%q lies in an input folder: choose another file", path)
	case there.Size() == 0 || o.guard.force:
		return nil
	}
	return o.refusal("%q exists, and does not show that this program wrote it: choose another file, or replace it with "+
		"--force", path)
}

// same reports one file or folder by two names, also where nothing is there yet. Names that differ
// in case are one for some systems.
func same(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	if errA == nil && errB == nil {
		return os.SameFile(infoA, infoB)
	}
	return strings.EqualFold(real(a), real(b))
}

// names reports whether an input, a path or a pattern, is a file.
func names(input, path string) bool {
	matches, _ := filepath.Glob(input)
	return same(input, path) || slices.ContainsFunc(matches, func(m string) bool { return same(m, path) })
}

// holds reports whether an input is a folder with a file in it, however deep.
func holds(input, path string) bool {
	info, err := os.Stat(input)
	return err == nil && info.IsDir() && strings.HasPrefix(real(path), real(input+"/.")+"/")
}

func (o *output) refusal(format string, args ...any) error {
	return refusal{o.flag + ": " + fmt.Sprintf(format, args...)}
}
