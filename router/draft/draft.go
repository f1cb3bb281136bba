// Package draft writes files whole or not at all: aside, under a name and a lock of their
// own, and then in their place. What killed writers left behind, a later one removes.
package draft

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// File is a draft: a temporary file beside its target that is locked while its writer is
// alive, so that a later process can tell what a killed one left behind.
type File struct {
	*os.File
	target string
}

// New starts a draft of the file at path target. Its name begins with the prefix.
func New(prefix, target string, mode fs.FileMode) (*File, error) {
	for range 100 {
		name := filepath.Join(filepath.Dir(target), fmt.Sprintf("%s%016x", prefix, rand.Uint64()))
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: target, Err: errors.Unwrap(err)}
		}
		a := &File{File: f, target: target}
		// A cleaner may have come between creation and lock; then this file is
		// gone or about to go, and the next name is tried.
		held, _ := lock(f)
		if _, err := os.Stat(name); !held && err == nil {
			return a, nil
		}
		if err := a.Discard(); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("no temporary file could be kept beside %q", target)
}

// Commit puts the draft in the target's place. It does not wait for the disk, which takes
// longer than all the rest: callers that have to, Sync.
func (a *File) Commit() error {
	if err := os.Rename(a.Name(), a.target); err != nil {
		return errors.Join(err, a.Discard())
	}
	return a.Close()
}

// Discard removes the draft.
func (a *File) Discard() error {
	err := os.Remove(a.Name())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, a.Close())
}

var random = regexp.MustCompile(`^[0-9a-f]{16}$`)

// Sweep removes the drafts with this prefix that killed writers left in a folder, and
// returns how many. A draft whose writer is alive is locked and stays; so do all of them
// where locks or permissions are lacking, which does no harm.
func Sweep(dir, prefix string) (int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	swept := 0
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), prefix)
		if ours && random.MatchString(rest) && e.Type().IsRegular() && sweepOne(filepath.Join(dir, e.Name())) {
			swept++
		}
	}
	return swept, nil
}

func sweepOne(path string) (gone bool) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false // its writer finished, or we may not
	}
	defer f.Close()
	if held, err := lock(f); held || err != nil {
		return false
	}
	// Its writer may have renamed it between the listing and the lock; then the
	// name is free and there is nothing to remove.
	return os.Remove(path) == nil
}
