// Package target holds the outputs of the verbs, and sees to it that none of them
// destroys anything: a verb can write only through its flags of type File and
// Folder, Guard finds these flags, and everything else on the command line counts as
// an input.
//
// It knows no format: Guard is told how to recognize what this program wrote.
package target

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/moebalance/moebalance/router/draft"
	"github.com/moebalance/moebalance/router/quantity"
)

// ErrRefused is wrapped by the error about an output that cannot be written or that
// would destroy something.
var ErrRefused = errors.New("refused output")

type refusal struct{ text string }

func (r refusal) Error() string { return r.text }
func (r refusal) Unwrap() error { return ErrRefused }

// File is the flag of an output file. An empty path means no output.
type File struct{ output }

// Folder is the flag of a folder of output files.
type Folder struct{ output }

// output is a flag whose value is a path, and what the guard tells it.
type output struct {
	Path   string
	flag   string
	folder bool
	Keeps  bool // of a folder: what is in it belongs together, and no other output goes there
	guard  *guard
}

// Name says which flag the output is.
func (o *output) Name(flag string) { o.flag = flag }

// Name says which flag the folder is.
func (d *Folder) Name(flag string) { d.flag, d.folder = flag, true }

// String, Set and Type make an output a flag.
func (o *output) String() string        { return o.Path }
func (o *output) Set(path string) error { o.Path = path; return nil }
func (o *output) Type() string          { return "string" }

func (o *output) own() *output { return o }

func (f *File) check() error { return f.checkFile(f.Path) }

func (d *Folder) check() error {
	if info, err := os.Stat(d.Path); err == nil && !info.IsDir() {
		return d.refusal("want a folder, but %q is a file", d.Path)
	}
	return nil
}

// CheckEmpty refuses a folder with something in it.
func (d *Folder) CheckEmpty() error {
	if entries, err := os.ReadDir(d.Path); err == nil && len(entries) > 0 {
		return d.refusal("want a new or empty folder, have %s in %q", quantity.Count(len(entries), "entry"), d.Path)
	}
	return nil
}

// Write writes the file whole or not at all, and with the permissions that it has,
// or any new file would get. Links are followed. A pipe or a device stays what it is
// and is written as the text comes.
func (f *File) Write(render func(io.Writer) error) error { return f.write(f.Path, render) }

// WriteOr writes the file, or to w where none is named.
func (f *File) WriteOr(w io.Writer, render func(io.Writer) error) error {
	if f.Path == "" {
		return render(w)
	}
	return f.Write(render)
}

// Write writes one file of the folder as File.Write does. The folder is made if it
// is missing.
func (d *Folder) Write(name string, render func(io.Writer) error) error {
	path := filepath.Join(d.Path, name)
	if err := cmp.Or(d.check(), os.MkdirAll(filepath.Dir(path), 0o755), d.guard.claim(path, &d.output)); err != nil {
		return err
	}
	return d.write(path, render)
}

// write asks the guard again when the text is there, for the target may have changed.
func (o *output) write(path string, render func(io.Writer) error) error {
	if there, err := os.Stat(path); err == nil && !there.Mode().IsRegular() {
		if err := o.checkFile(path); err != nil {
			return err
		}
		return writeThrough(path, render)
	}
	return WriteOwn(path, func(w io.Writer) error {
		if err := render(w); err != nil {
			return err
		}
		return o.checkFile(path)
	})
}

// draftPrefix begins the names of outputs that are being written.
const draftPrefix = ".moebalance-"

// WriteOwn writes a file whole or not at all, without asking what was there: a draft beside the
// target is renamed. Drafts of killed writers beside it go.
func WriteOwn(path string, render func(io.Writer) error) (err error) {
	there, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	target := linked(path)
	draft.Sweep(filepath.Dir(target), draftPrefix)
	var name string
	err = draft.Write(draftPrefix, target, 0o666, func(d *os.File) error {
		if name = d.Name(); there != nil {
			if err := d.Chmod(there.Mode().Perm()); err != nil {
				return err
			}
		}
		return cmp.Or(render(d), d.Sync())
	})
	if at := new(fs.PathError); errors.As(err, &at) && (at.Path == target || at.Path == name) {
		at.Path = path // the name that was asked for
	}
	return err
}

// writeThrough writes into a pipe, whose reader may come a moment later, or a device.
func writeThrough(path string, render func(io.Writer) error) error {
	for waited := 0; ; waited++ {
		f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		switch {
		case err == nil:
			return errors.Join(render(f), f.Close())
		case !errors.Is(err, syscall.ENXIO):
			return err
		case waited == 50:
			return fmt.Errorf("%s: want a pipe that a program reads, have none within half a second", path)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// mostLinks is how many links the kernel follows before it calls them a loop.
const mostLinks = 40

// linked is where the links from a path end: a → b → c gives c. What they name need not exist. Links
// in a loop end at one of them, which cannot be opened.
func linked(path string) string {
	for range mostLinks {
		to, err := os.Readlink(path)
		if err != nil {
			return path // no link
		}
		if !filepath.IsAbs(to) {
			to = filepath.Dir(path) + string(filepath.Separator) + to // not Join: after a link, ".." is another folder
		}
		path = to
	}
	return path
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
