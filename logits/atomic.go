package logits

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

const temporaryPrefix = ".pending-"

// atomicFile is an entry that is being written: a temporary file in the cache's
// folder that is locked while its writer is alive, so that a later process
// can tell what a killed one left behind.
type atomicFile struct {
	*os.File
	target string
}

// newAtomicFile starts a temporary for the entry at path target.
func newAtomicFile(target string) (*atomicFile, error) {
	for range 100 {
		name := filepath.Join(filepath.Dir(target), fmt.Sprintf("%s%016x", temporaryPrefix, rand.Uint64()))
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: target, Err: errors.Unwrap(err)}
		}
		a := &atomicFile{File: f, target: target}
		// A cleaner may have come between creation and lock; then this file is
		// gone or about to go, and the next name is tried.
		held, _ := lock(f)
		if _, err := os.Stat(name); !held && err == nil {
			return a, nil
		}
		if err := a.discard(); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("no temporary file could be kept beside %q", target)
}

// commit makes the entry visible. It does not wait for the disk, which takes longer than
// all the rest: after a power cut the length or the checksum shows what is missing.
func (a *atomicFile) commit() error {
	if err := os.Rename(a.Name(), a.target); err != nil {
		return errors.Join(err, a.discard())
	}
	return a.Close()
}

// discard removes the temporary.
func (a *atomicFile) discard() error {
	err := os.Remove(a.Name())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, a.Close())
}

// sweep removes the temporaries that killed writers left in a cache's folder
// and returns how many. A temporary whose writer is alive is locked and stays; so
// do all of them where locks or permissions are lacking, which does no harm.
func sweep(dir string) (int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	swept := 0
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), temporaryPrefix) && e.Type().IsRegular() && sweepOne(filepath.Join(dir, e.Name())) {
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
