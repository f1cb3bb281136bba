package target

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/router/draft"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
)

// ErrRefused is wrapped by the error about an output that cannot be written or that would destroy
// something.
var ErrRefused = errors.New("not written")

// guard holds what the outputs of a verb must not replace. Its paths are without links.
type guard struct {
	ours   func(path string) bool
	force  bool
	inputs []string
	claims map[string]string // the flag that writes a path
}

// output is the output that a flag names, nil for other flags.
func output(f *pflag.Flag) *File {
	switch o := flags.Field(f).(type) {
	case *File:
		return o
	case *Folder:
		return &o.File
	}
	return nil
}

// Guard checks the outputs of a verb before it runs, and each file again before it takes its place. An
// output never is an input. An existing file is replaced only if it is ours, written by this program, or
// with --force, a flag that verbs with outputs get.
func Guard(c *cobra.Command, ours func(path string) bool) {
	g := &guard{ours: ours, claims: map[string]string{}}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if output(f) != nil {
			c.PreRunE = g.before
		}
	})
	if c.PreRunE != nil {
		c.Flags().BoolVar(&g.force, "force", false, "let outputs replace existing files, but never an input")
	}
}

// before checks the outputs against all other words of the command line.
func (g *guard) before(c *cobra.Command, args []string) (err error) {
	g.addWords("", args...)
	var outputs []*File
	c.Flags().VisitAll(func(f *pflag.Flag) {
		list, _ := f.Value.(pflag.SliceValue)
		switch o := output(f); {
		case o != nil:
			o.guard, o.flag = g, "--"+f.Name
			outputs = append(outputs, o)
		case list != nil:
			g.addWords("", list.GetSlice()...)
		case f.Changed:
			g.addWords("", f.Value.String())
		}
	})
	for _, o := range outputs {
		if o.Path != "" && err == nil {
			err = o.check()
		}
	}
	return err
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
				g.inputs = append(g.inputs, draft.Place(path))
			}
		}
	}
}

// Inputs refuses the file if words of a command that ran in a folder mean it.
func (f *File) Inputs(dir string, words ...string) error {
	if f.Path == "" {
		return nil
	}
	f.guard.addWords(dir, words...)
	return f.check()
}

// kinds are the words for what is, and is not, a folder.
var kinds = map[bool]string{true: "folder", false: "file"}

// check refuses a target that is an input or another output, that cannot be written, or that must not be
// lost.
func (f *File) check() error {
	there, err := os.Stat(f.Path)
	at := draft.Place(f.Path)
	in := func(folder string) bool { return strings.HasPrefix(at, folder+"/") }
	by, claimed := f.guard.claims[strings.ToLower(at)] // some systems ignore the case of names
	denied := unix.Access(filepath.Dir(at), unix.W_OK)
	switch {
	case err == nil && there.IsDir() != f.folder:
		return f.refusal("want a %s, but %q is a %s", kinds[f.folder], f.Path, kinds[!f.folder])
	case f.folder:
		return nil
	case claimed && by != f.flag:
		return f.refusal("%q is the output of %s, too: choose another name for one of them", f.Path, by)
	case err == nil && !there.Mode().IsRegular():
		return nil // a pipe or a device loses nothing
	case slices.Contains(f.guard.inputs, at) || there != nil && slices.ContainsFunc(f.guard.inputs, in):
		return f.refusal("%q is an input, or lies in one, which is never replaced: choose another file", f.Path)
	case denied != nil:
		return f.refusal("no folder %q that can be written in: %v", filepath.Dir(f.Path), denied)
	case there != nil && there.Size() > 0 && !f.guard.force && !f.guard.ours(f.Path):
		return f.refusal("%q exists, and does not show that this program wrote it: choose another file, or replace it with "+
			"--force", f.Path)
	}
	f.guard.claims[strings.ToLower(at)] = f.flag
	return nil
}

func (f *File) refusal(format string, args ...any) error {
	return fmt.Errorf("%s: %w: "+format, append([]any{f.flag, ErrRefused}, args...)...)
}
