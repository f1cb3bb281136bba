// Package target holds the outputs of the verbs, and sees to it that none of them destroys
// anything: a verb can write only through its flags of type File and Folder, Guard finds these
// flags, and everything else on the command line counts as an input.
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

	"github.com/moebalance/moebalance/router/draft"
)

// ErrRefused is wrapped by the error about an output that cannot be written or that would destroy
// something.
var ErrRefused = errors.New("not written")

// File is the flag of an output file. An empty path means no output.
type File struct {
	Path  string
	flag  string
	guard *guard
}

// String, Set and Type make an output a flag.
func (f *File) String() string { return f.Path }
func (f *File) Type() string   { return "string" }
func (f *File) Set(path string) error {
	if f.Path = path; path == "" {
		return errors.New("want a name")
	}
	return nil
}

func (f *File) file() *File { return f }

// Inputs adds the words of a command, whose relative paths begin in a folder, to the inputs of the verb,
// and checks the file against them.
func (f *File) Inputs(dir string, words ...string) error {
	if f.guard.addWords(dir, words...); f.Path == "" {
		return nil
	}
	return f.check()
}

// WriteOr writes the file, or to w where none is named.
func (f *File) WriteOr(w io.Writer, render func(io.Writer) error) error {
	if f.Path == "" {
		return render(w)
	}
	return f.Write(render)
}

// Write writes the file whole or not at all, after another check when the text is there, for the target may
// have changed. A device, or a pipe that a program reads, is written as the text comes.
func (f *File) Write(render func(io.Writer) error) error {
	there, err := os.Stat(f.Path)
	if err != nil || there.Mode().IsRegular() {
		return WriteOwn(f.Path, func(w io.Writer) error {
			if err := render(w); err != nil {
				return err
			}
			return f.check()
		})
	}
	if err := f.check(); err != nil {
		return err
	}
	through, err := os.OpenFile(f.Path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, syscall.ENXIO):
		return fmt.Errorf("%s: want a pipe that a program reads, have none that does", f.Path)
	case err != nil:
		return err
	}
	return errors.Join(render(through), through.Close())
}

// Folder is the flag of a folder of output files, made if it is missing.
type Folder struct{ File }

func (d *Folder) check() error {
	if info, err := os.Stat(d.Path); err == nil && !info.IsDir() {
		return d.refusal("want a folder, but %q is a file", d.Path)
	}
	return nil
}

// Write writes one file of the folder.
func (d *Folder) Write(name string, render func(io.Writer) error) error {
	f := d.File
	f.Path = filepath.Join(d.Path, name)
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return err
	}
	return f.Write(render)
}

// draftPrefix begins the names of outputs that are being written.
const draftPrefix = ".moebalance-"

// WriteOwn writes a file whole or not at all, without asking what was there: a draft beside the target is
// renamed. Links are followed, and the file keeps its permissions. Drafts of killed writers beside it go.
func WriteOwn(path string, render func(io.Writer) error) error {
	there, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	target := path
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		target = resolved
	}
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
	if at := (*fs.PathError)(nil); errors.As(err, &at) && at.Path == name {
		at.Path = path // the name that was asked for
	}
	return err
}
