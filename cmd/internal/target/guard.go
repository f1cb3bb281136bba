package target

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
)

// Rules is what the guard has to know about files of ours and of others.
type Rules struct {
	// Expand lists the files that are read where a path is given: those of a folder, those
	// that a pattern matches, or those that an index names.
	Expand func(path string) []string
	// Store names the kind of store that a folder is, "" for anything else.
	Store func(folder string) (kind string)
	// Whole reports folders that are one input, which a file more would change.
	Whole func(folder string) bool
	// Ours reports by its first bytes whether a file is an earlier result of this program.
	Ours func(head []byte) bool
	// Known reports files that a verb reads: recorded data, settings, reports of engines.
	Known func(path string) bool
}

// RunsCommand is the annotation of a verb whose arguments are a command.
const RunsCommand = "moebalance-runs-command"

// Guard puts the outputs of all verbs under guard: before a verb runs, and again
// before each file takes its place, their targets are held against the inputs and
// against the files that are there. Each verb that has an output gets the flag
// --force, which permits everything but the loss of an input.
func Guard(root *cobra.Command, rules Rules) {
	g := &guard{rules: rules}
	g.addForce(root)
	root.PersistentPreRunE = func(c *cobra.Command, args []string) error {
		g.collect(c, args)
		var err error // the first: one line is enough
		for _, step := range []func(checked) error{func(o checked) error { return g.claim(o.to()) }, checked.check} {
			visit(c, func(o checked) {
				if path, _ := o.to(); err == nil && path != "" {
					err = step(o)
				}
			})
		}
		return err
	}
}

type guard struct {
	rules  Rules
	force  bool
	inputs []place // files, and folders that are one input
	claims []place
}

// place is a file or folder. One that is not there yet, such as the output of a benchmark
// command, is known by its name.
type place struct {
	path string // absolute
	info os.FileInfo
	by   *output // that claims it
}

// placeOf is where the links of a path lead, though nothing be there.
func placeOf(path string) place {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		path = linked(path)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	} else if folder, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(folder, filepath.Base(path))
	}
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	return place{path: path, info: info}
}

// is reports one place by two names. Names that differ in case are one for some systems.
func (p place) is(other place) bool {
	if p.info != nil && other.info != nil {
		return os.SameFile(p.info, other.info)
	}
	return strings.EqualFold(p.path, other.path)
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
		c.Flags().BoolVar(&g.force, "force", false,
			"let outputs replace existing files of other kinds, but never an input")
	}
	for _, sub := range c.Commands() {
		g.addForce(sub)
	}
}

// collect takes every word of the command line that is no output for an input.
func (g *guard) collect(c *cobra.Command, args []string) {
	_, command := c.Annotations[RunsCommand]
	for _, word := range args {
		g.addWord(word, command)
	}
	c.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			if _, ok := f.Value.(checked); !ok {
				g.addWord(v, command)
			}
		}
	})
}

// separators stand between a path and what is around it in a word: --flag=PATH,
// A,B, /host:/container, @PATH, and whole command lines in quotes.
const separators = "=,:@;<>'\"` \t\n"

// addWord adds the files that a word may mean.
func (g *guard) addWord(word string, command bool) {
	parts := strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune(separators, r) })
	for rest, found := word, true; found; _, rest, found = strings.Cut(rest, "=") {
		parts = append(parts, rest) // a path with separators in it
	}
	for _, part := range parts {
		g.add(part)
		if command {
			if program, err := exec.LookPath(part); err == nil {
				g.add(program)
			}
			continue
		}
		for _, path := range g.rules.Expand(part) {
			g.add(path)
		}
	}
}

func (g *guard) add(path string) {
	p := placeOf(path)
	if path == "" || p.info != nil && p.info.IsDir() && g.rules.Store(path) == "" && !g.rules.Whole(path) {
		return
	}
	g.inputs = append(g.inputs, p)
}

// Inputs adds the words of a command, of which relative paths begin in dir, to the
// inputs of the verb, and checks the file against them.
func (f *File) Inputs(dir string, words ...string) error {
	for _, word := range words {
		f.guard.addWord(word, true)
		if !filepath.IsAbs(word) {
			f.guard.add(filepath.Join(dir, word))
		}
	}
	if f.Path == "" {
		return nil
	}
	return f.check()
}

// claim refuses a path that another output of the verb writes, or that lies in its store. Two
// folders of outputs may be one.
func (g *guard) claim(path string, o *output) error {
	own := placeOf(path)
	for _, c := range g.claims {
		if c.by != o && own.is(c) && !(c.by.folder && o.folder) {
			return o.refusal("%q is the output of %s, too: choose another name for one of them", path, c.by.flag)
		}
	}
	own.by = o
	g.claims = append(g.claims, own)
	return nil
}

// checkPlace refuses an input, and what lies in a store unless it is one itself of the kind own.
func (o *output) checkPlace(path, own string) error {
	if o.guard == nil {
		return fmt.Errorf("%s: nothing guards this output: the program was put together wrongly", path)
	}
	target := placeOf(path)
	for at := target; ; at = placeOf(filepath.Dir(at.path)) {
		switch input := slices.ContainsFunc(o.guard.inputs, at.is); {
		case input && at == target && o.folder && path == o.Path: // of files in it, each is asked for
		case input && at == target:
			return o.refusal("%q is an input, which is never replaced: choose another file", path)
		case input:
			return o.refusal("%q lies in an input folder, which is read whole: choose another folder", path)
		}
		kind := o.guard.rules.Store(at.path)
		if slices.ContainsFunc(o.guard.claims, func(c place) bool { return c.by != o && c.by.Store != "" && c.is(at) }) {
			kind = "store of this command"
		}
		if kind != "" && !(at == target && kind == own) && !o.guard.force {
			return o.refusal("%q lies in the %s %q: choose another place, or use --force", path, kind, at.path)
		}
		if at.path == filepath.Dir(at.path) {
			return nil
		}
	}
}

// checkFile refuses a target that cannot be written or that must not be lost.
func (o *output) checkFile(path string, ours func(string) bool, regular bool) error {
	there, err := os.Stat(path)
	switch {
	case err == nil && there.IsDir():
		return o.refusal("want a file, but %q is a folder", path)
	case err == nil && !there.Mode().IsRegular() && regular:
		return o.refusal("want a regular file, but %q is none", path)
	case err == nil && !there.Mode().IsRegular(), err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil // a pipe or a device loses nothing; of others, writing says what is wrong
	}
	folder := filepath.Dir(linked(path))
	if unix.Access(folder, unix.F_OK) != nil {
		return o.refusal("no folder %q to write %q in", filepath.Dir(path), filepath.Base(path))
	}
	if err := unix.Access(folder, unix.W_OK); err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	if err := o.checkPlace(path, ""); err != nil || there == nil || there.Size() == 0 || o.guard.force ||
		ours != nil && ours(path) {
		return err
	}
	if kind := o.guard.foreign(path); kind != "" {
		return o.refusal("%q is an existing %s: choose another file, or replace it with --force", path, kind)
	}
	return nil
}

// texts are the endings of the names of texts that a result may replace, for it bears no mark of
// ours. Results in other formats do.
var texts = []string{"", ".txt", ".text", ".md", ".markdown", ".csv", ".tsv"}

// foreign says what an existing file is that no result replaces: all but what this
// program wrote, and text that it does not know. "" is for those two.
func (g *guard) foreign(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return "file that cannot be read"
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, 4096))
	switch {
	case err != nil:
		return "file that cannot be read"
	case g.rules.Ours(head):
		return ""
	case !isText(head):
		return "file that is not text"
	case !slices.Contains(texts, strings.ToLower(filepath.Ext(path))) || bytes.HasPrefix(head, []byte("#!")):
		return "file of another kind"
	case g.rules.Known(path):
		return "file with data or settings"
	}
	return ""
}

// isText reports whether the beginning of a file is text: a character may be cut at its end.
func isText(head []byte) bool {
	for cut := 0; cut < utf8.UTFMax && !utf8.Valid(head); cut++ {
		head = head[:max(0, len(head)-1)]
	}
	control := func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\t\n\r\f\x1b", r) }
	return len(head) > 0 && utf8.Valid(head) && !bytes.ContainsFunc(head, control)
}
