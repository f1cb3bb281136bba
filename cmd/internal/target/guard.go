package target

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
)

// guard holds what the outputs of a verb must not replace. Its paths are keys.
type guard struct {
	ours   func(path string) bool
	force  bool
	inputs []string
	claims map[string]string // the flag that writes a path
}

// guarded is an output whose target can be judged before the verb runs.
type guarded interface {
	file() *File
	check() error
}

// Guard checks the outputs of a verb before it runs, and each file again before it takes its place. An
// output never is an input. An existing file is replaced only if it is ours, written by this program, or
// with --force, a flag that verbs with outputs get.
func Guard(c *cobra.Command, ours func(path string) bool) {
	g := &guard{ours: ours, claims: map[string]string{}}
	var outputs []guarded
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if o, ok := f.Value.(guarded); ok {
			o.file().guard, o.file().flag, outputs = g, "--"+f.Name, append(outputs, o)
		}
	})
	if len(outputs) == 0 {
		return
	}
	c.Flags().BoolVar(&g.force, "force", false, "let outputs replace existing files, but never an input")
	c.PreRunE = func(c *cobra.Command, args []string) error {
		g.addWords("", args...)
		c.Flags().Visit(func(f *pflag.Flag) {
			if list, ok := f.Value.(pflag.SliceValue); ok {
				g.addWords("", list.GetSlice()...)
			} else if _, ok := f.Value.(guarded); !ok {
				g.addWords("", f.Value.String())
			}
		})
		for _, o := range outputs {
			if o.file().Path == "" {
				continue
			}
			if err := o.check(); err != nil {
				return err
			}
		}
		return nil
	}
}

// separators stand between a path and what is around it in a word: --flag=PATH, A,B,
// /host:/container, @PATH, and whole command lines in quotes.
const separators = "=,:@;<>'\"` \t\n"

// addWords adds the paths that words may mean, relative ones from a folder, and the files that match them:
// "--log=*.txt" → "--log=*.txt", "--log", "*.txt", "a.txt", "b.txt".
func (g *guard) addWords(dir string, words ...string) {
	for _, word := range words {
		parts := strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune(separators, r) })
		_, value, _ := strings.Cut(word, "=")
		for _, part := range append(parts, word, value) { // a path may have separators in it
			switch {
			case part == "":
				continue
			case !filepath.IsAbs(part):
				part = filepath.Join(dir, part)
			}
			matches, _ := filepath.Glob(part)
			for _, path := range append(matches, part) {
				g.inputs = append(g.inputs, key(path))
			}
		}
	}
}

// check refuses a target that is an input or another output, that cannot be written, or that must not be
// lost.
func (f *File) check() error {
	there, err := os.Stat(f.Path)
	at := key(f.Path)
	_, noLink := os.Readlink(f.Path)
	by, claimed := f.guard.claims[strings.ToLower(at)] // some systems ignore the case of names
	f.guard.claims[strings.ToLower(at)] = f.flag
	denied := unix.Access(filepath.Dir(at), unix.W_OK)
	switch {
	case claimed && by != f.flag:
		return f.refusal("%q is the output of %s, too: choose another name for one of them", f.Path, by)
	case err == nil && there.IsDir():
		return f.refusal("want a file, but %q is a folder", f.Path)
	case err == nil && !there.Mode().IsRegular():
		return nil // a pipe or a device loses nothing
	case slices.Contains(f.guard.inputs, at):
		return f.refusal("%q is an input, which is never replaced: choose another file", f.Path)
	case err != nil && noLink == nil:
		return f.refusal("%q is a link to a file that does not exist: name the file itself", f.Path)
	case errors.Is(denied, fs.ErrNotExist):
		return f.refusal("no folder %q to write %q in", filepath.Dir(f.Path), filepath.Base(f.Path))
	case denied != nil:
		return &os.PathError{Op: "open", Path: f.Path, Err: denied}
	case there == nil:
		return nil
	case slices.ContainsFunc(f.guard.inputs, func(in string) bool { return strings.HasPrefix(at, in+"/") }):
		return f.refusal("%q lies in an input folder: choose another file", f.Path)
	case there.Size() == 0 || f.guard.force || f.guard.ours(f.Path):
		return nil
	}
	return f.refusal("%q exists, and does not show that this program wrote it: choose another file, or replace it with "+
		"--force", f.Path)
}

// key is the absolute path without links, of which the last element need not exist.
func key(path string) string {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		if folder, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
			path = filepath.Join(folder, filepath.Base(path))
		}
		resolved = path
	}
	if absolute, err := filepath.Abs(resolved); err == nil {
		return absolute
	}
	return resolved
}

func (f *File) refusal(format string, args ...any) error {
	return fmt.Errorf("%s: %w: "+format, append([]any{f.flag, ErrRefused}, args...)...)
}
