package target

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
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

// Guard checks the outputs of a verb before it runs, and each file again before it takes its
// place. An output never is an input. An existing file is replaced only if ours knows by its
// first bytes that this program wrote it, or with --force, which each verb with an output gets.
func Guard(root *cobra.Command, ours func(head []byte) bool) {
	g := &guard{ours: ours}
	g.addForce(root)
	root.PersistentPreRunE = func(c *cobra.Command, args []string) error {
		g.collect(c, args)
		var err error // the first: one line is enough
		visit(c, func(o checked) {
			if path, own := o.to(); path != "" && err == nil {
				err = cmp.Or(g.claim(path, own), o.check())
			}
		})
		return err
	}
}

type guard struct {
	ours    func(head []byte) bool
	force   bool
	inputs  []string // words of the command line that may be paths or patterns
	outputs []claimed
}

// claimed is the path of an output.
type claimed struct {
	path string
	by   *output
}

// checked is an output whose target the guard can judge.
type checked interface {
	to() (path string, by *output)
	check() error
}

func visit(c *cobra.Command, each func(checked)) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if o, ok := f.Value.(checked); ok {
			each(o)
		}
	})
}

func (g *guard) addForce(c *cobra.Command) {
	writes := false
	visit(c, func(o checked) {
		_, by := o.to()
		writes, by.guard = true, g
	})
	if writes {
		c.Flags().BoolVar(&g.force, "force", false, "let outputs replace existing files, but never an input")
	}
	for _, sub := range c.Commands() {
		g.addForce(sub)
	}
}

// collect takes every word of the command line that is no output for an input.
func (g *guard) collect(c *cobra.Command, args []string) {
	_, command := c.Annotations[RunsCommand]
	words := slices.Clone(args)
	c.Flags().Visit(func(f *pflag.Flag) {
		if list, ok := f.Value.(pflag.SliceValue); ok {
			words = append(words, list.GetSlice()...)
		} else if _, output := f.Value.(checked); !output {
			words = append(words, f.Value.String())
		}
	})
	for _, word := range words {
		g.addWord(word, command)
	}
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
	for _, c := range g.outputs {
		within := c.by.Keeps && strings.HasPrefix(real(path)+"/", real(c.path)+"/")
		if c.by != o && (within || same(path, c.path) && !(c.by.folder && o.folder)) {
			return o.refusal("%q is the output of %s, too: choose another name for one of them", path, c.by.flag)
		}
	}
	g.outputs = append(g.outputs, claimed{path, o})
	return nil
}

// checkFile refuses a target that is an input, that cannot be written, or that must not be lost.
func (o *output) checkFile(path string, ours func(string) bool) error {
	if o.guard == nil {
		return fmt.Errorf("%s: nothing guards this output: the program was put together wrongly", path)
	}
	there, err := os.Stat(path)
	folder := filepath.Dir(linked(path))
	switch {
	case err == nil && there.IsDir():
		return o.refusal("want a file, but %q is a folder", path)
	case err == nil && !there.Mode().IsRegular(), err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil // a pipe or a device loses nothing; of others, writing says what is wrong
	case slices.ContainsFunc(o.guard.inputs, func(in string) bool { return names(in, path) }):
		return o.refusal("%q is an input, which is never replaced: choose another file", path)
	case unix.Access(folder, unix.F_OK) != nil:
		return o.refusal("no folder %q to write %q in", filepath.Dir(path), filepath.Base(path))
	case unix.Access(folder, unix.W_OK) != nil:
		return &fs.PathError{Op: "open", Path: path, Err: unix.Access(folder, unix.W_OK)}
	case there == nil || o.guard.wrote(path) || ours != nil && ours(path):
		return nil
	case slices.ContainsFunc(o.guard.inputs, func(in string) bool { return holds(in, path) }):
		return o.refusal("%q lies in an input folder: choose another file", path)
	case there.Size() == 0 || o.guard.force:
		return nil
	}
	return o.refusal("%q exists, and does not show that this program wrote it: choose another file, or replace it with "+
		"--force", path)
}

// wrote reports whether a file bears a mark of this program.
func (g *guard) wrote(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, 4096))
	return err == nil && g.ours(head)
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

// real is the absolute path without links, of which the last element need not exist.
func real(path string) string {
	path = linked(path)
	if folder, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(folder, filepath.Base(path))
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return absolute
}

// names reports whether an input, a path or a pattern, is a file.
func names(input, path string) bool {
	if same(input, path) {
		return true
	}
	matches, err := filepath.Glob(input)
	return err == nil && slices.ContainsFunc(matches, func(m string) bool { return same(m, path) })
}

// holds reports whether an input is a folder with a file in it, however deep.
func holds(input, path string) bool {
	info, err := os.Stat(input)
	return err == nil && info.IsDir() && strings.HasPrefix(real(path), real(input+"/.")+"/")
}
