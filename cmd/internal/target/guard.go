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
	// Expand lists the files that are read where a path is given: those of a folder, or
	// those that an index names.
	Expand func(path string) []string
	// Store names the kind of store that a folder is, "" for any other folder.
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
	g := &guard{rules: rules, claims: map[string]*output{}}
	g.addForce(root)
	root.PersistentPreRunE = func(c *cobra.Command, args []string) error {
		g.collect(c, args)
		var errs []error
		visit(c, func(o checked) { errs = append(errs, o.check()) })
		for _, err := range errs {
			if err != nil {
				return err // one line is enough
			}
		}
		return nil
	}
}

type guard struct {
	rules  Rules
	force  bool
	inputs []input
	stores []string           // resolved folders that this verb writes its store to
	wholes []string           // resolved folders that are one input
	claims map[string]*output // by the resolved path in small letters
}

// input is a file that must not change. One that is not there yet, such as the
// output of a benchmark command, is known by its name.
type input struct {
	path string // resolved
	info os.FileInfo
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
	visit(c, func(o checked) { writes = true; o.watchedBy(g) })
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
		if d, ok := f.Value.(*Folder); ok && d.Store != "" {
			g.stores = append(g.stores, resolved(d.Path))
		}
		if _, ok := f.Value.(checked); ok {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			g.addWord(v, command)
		}
	})
}

// separators stand between a path and what is around it in a word: --flag=PATH,
// A,B, /host:/container, @PATH, and whole command lines in quotes.
const separators = "=,:@;<>'\"` \t\n"

// addWord adds the files that a word may mean.
func (g *guard) addWord(word string, command bool) {
	parts := append([]string{word},
		strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune(separators, r) })...)
	for rest, found := word, true; found; {
		if _, rest, found = strings.Cut(rest, "="); found {
			parts = append(parts, rest) // a path with separators in it
		}
	}
	for _, part := range parts {
		g.add(part)
		if command {
			if program, err := exec.LookPath(part); err == nil {
				g.add(program)
			}
			continue
		}
		for _, path := range append(g.rules.Expand(part), matching(part)...) {
			g.add(path)
		}
	}
}

// matching lists the files of a pattern.
func matching(pattern string) []string {
	if !strings.ContainsAny(pattern, "*?[") {
		return nil
	}
	found, _ := filepath.Glob(pattern) // the verb says what is wrong with it
	return found
}

func (g *guard) add(path string) {
	if path == "" {
		return
	}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		if g.rules.Store(path) != "" {
			g.inputs = append(g.inputs, input{path: resolved(path) + string(filepath.Separator)})
		} else if g.rules.Whole != nil && g.rules.Whole(path) {
			g.wholes = append(g.wholes, resolved(path))
		}
		return
	}
	g.inputs = append(g.inputs, input{resolved(path), info})
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
	return f.check()
}

// checkFile refuses a target that cannot be written or that must not be lost.
func (o *output) checkFile(path string, ours func(string) bool, regular bool) error {
	if path == "" {
		return nil
	}
	if o.guard == nil {
		return fmt.Errorf("%s: nothing guards this output: the program was put together wrongly", path)
	}
	there, err := os.Stat(path)
	switch folder := filepath.Dir(path); {
	case err == nil && there.IsDir():
		return o.refusal("want a file, but %q is a folder", path)
	case err == nil && !there.Mode().IsRegular():
		if regular {
			return o.refusal("want a regular file, but %q is none", path)
		}
		return nil // a pipe or a device loses nothing
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil // writing says what is wrong
	case !isFolder(filepath.Dir(linked(path))):
		return o.refusal("no folder %q to write %q in", folder, filepath.Base(path))
	}
	if err := unix.Access(filepath.Dir(linked(path)), unix.W_OK); err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	name := resolved(path)
	if err := o.claim(path, name); err != nil {
		return err
	}
	if o.guard.reads(name, there) {
		return o.refusal("%q is an input, which is never replaced: choose another file", path)
	}
	if slices.Contains(o.guard.wholes, filepath.Dir(name)) {
		return o.refusal("%q lies in an input folder, which is read whole: choose another folder", path)
	}
	if err := o.checkStore(path, filepath.Dir(name), ""); err != nil || there == nil || there.Size() == 0 ||
		o.guard.force {
		return err
	}
	if ours == nil || !ours(path) {
		if kind := o.guard.foreign(path); kind != "" {
			return o.refusal("%q is an existing %s: choose another file, or replace it with --force", path, kind)
		}
	}
	return nil
}

// claim refuses a path that another output of the verb writes. Two folders of outputs
// may be one. Names that differ in case are one file for some systems.
func (o *output) claim(path, resolved string) error {
	name := strings.ToLower(resolved)
	if by := o.guard.claims[name]; by != nil && by != o && !(by.folder && o.folder) {
		return o.refusal("%q is the output of %s, too: choose another name for one of them", path, by.flag)
	}
	o.guard.claims[name] = o
	return nil
}

// reads reports a file that is an input, by whatever name.
func (g *guard) reads(name string, there os.FileInfo) bool {
	return slices.ContainsFunc(g.inputs, func(in input) bool {
		if strings.HasSuffix(in.path, string(filepath.Separator)) {
			return there != nil && strings.HasPrefix(name, in.path)
		}
		return in.path == name || in.info != nil && there != nil && os.SameFile(in.info, there)
	})
}

// checkStore refuses a folder that lies in a store, unless it is one itself of the
// kind own.
func (o *output) checkStore(path, folder, own string) error {
	if o.guard == nil || o.guard.force {
		return nil
	}
	for at := folder; ; at = filepath.Dir(at) {
		kind := o.guard.rules.Store(at)
		if kind == "" && own == "" && slices.Contains(o.guard.stores, at) {
			kind = "store of this command"
		}
		if kind != "" && !(at == folder && kind == own) {
			return o.refusal("%q lies in the %s %q: choose another place, or use --force", path, kind, at)
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

// texts are the endings of the names of texts that a result may replace: results have
// them. Programs, settings and logs have others.
var texts = []string{"", ".txt", ".text", ".md", ".markdown", ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".html",
	".htm", ".svg", ".yaml", ".yml"}

// foreign says what an existing file is that no result replaces: all but what this
// program wrote, and text that it does not know. "" is for those two.
func (g *guard) foreign(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return "file that cannot be read"
	}
	defer f.Close()
	head := make([]byte, 4096)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return "file that cannot be read"
	}
	switch head = head[:n]; {
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

// resolved is the absolute path without links. What does not exist keeps its name.
func resolved(path string) string {
	if _, err := os.Stat(path); err == nil || errors.Is(err, fs.ErrNotExist) {
		path = linked(path)
	}
	missing := ""
	for at := path; ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			if absolute, err := filepath.Abs(real); err == nil {
				return filepath.Join(absolute, missing)
			}
		}
		if at == filepath.Dir(at) {
			return path
		}
		missing = filepath.Join(filepath.Base(at), missing)
	}
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
