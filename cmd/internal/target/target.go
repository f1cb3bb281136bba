// Package target holds the outputs of the verbs, and sees to it that none of them destroys
// anything: a verb can write only through its flags of type File and Folder, Guard finds these
// flags, and everything else on the command line counts as an input.
//
// It knows no format: Guard is told how to recognize what this program wrote.
package target

import (
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/moebalance/moebalance/router/draft"
)

// File is the flag of an output file. An empty path means no output.
type File struct {
	Path   string
	flag   string
	folder bool
	guard  *guard
}

// Folder is the flag of a folder of output files, made if it is missing.
type Folder struct{ File }

// ParseFile reads the flag of a file.
func ParseFile(path string) (File, error) { return File{Path: path}, nil }

// ParseFolder reads the flag of a folder.
func ParseFolder(path string) (Folder, error) { return Folder{File{Path: path, folder: true}}, nil }

// Write writes the file whole or not at all, after another check when the text is there, for the target may
// have changed. Drafts of killed writers beside it go. A device, or a pipe that a program reads, is written as the
// text comes, and so is stdout, where no file is named.
func (f *File) Write(stdout io.Writer, render func(io.Writer) error) error {
	if f.Path == "" {
		return render(stdout)
	}
	if there, err := os.Stat(f.Path); err != nil || there.Mode().IsRegular() {
		draft.Sweep(filepath.Dir(f.Path), draftPrefix)
		return draft.Write(draftPrefix, f.Path, 0o666, func(d *os.File) error {
			if err := render(d); err != nil {
				return err
			}
			return cmp.Or(f.check(), d.Sync())
		})
	}
	if err := f.check(); err != nil {
		return err
	}
	through, err := os.OpenFile(f.Path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err // of a pipe that no program reads, too
	}
	return errors.Join(render(through), through.Close())
}

// Write writes one file of the folder.
func (d *Folder) Write(name string, render func(io.Writer) error) error {
	f := d.File
	f.Path, f.folder = filepath.Join(d.Path, name), false
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
		return err
	}
	return f.Write(nil, render)
}

// draftPrefix begins the names of outputs that are being written.
const draftPrefix = ".moebalance-"
