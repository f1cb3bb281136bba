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

const pendingPrefix = ".pending-"

// pending is an entry that is being written: a temporary file in the cache's
// folder that is locked as long as its writer lives, so that a later process
// can tell what a killed one left behind.
type pending struct {
	*os.File
	target string
}

// newPending starts a temporary for the entry at path target.
func newPending(target string) (*pending, error) {
	for range 100 {
		name := fmt.Sprintf("%s%016x", pendingPrefix, rand.Uint64())
		f, err := os.OpenFile(filepath.Join(filepath.Dir(target), name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		p := &pending{File: f, target: target}
		// A cleaner may have come between creation and lock; then this file is
		// gone or about to go, and the next name is tried.
		held, _ := lock(f)
		if !held && p.present() {
			return p, nil
		}
		if err := p.discard(); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("no temporary file could be kept beside %q", target)
}

// present reports whether the temporary's name still leads to this file.
func (p *pending) present() bool {
	named, err := os.Stat(p.Name())
	if err != nil {
		return false
	}
	open, err := p.Stat()
	return err == nil && os.SameFile(named, open)
}

// commit makes the entry whole and visible: content synced, then renamed. The
// folder is synced by the caller, once for many entries.
func (p *pending) commit() error {
	if err := p.Sync(); err != nil {
		return errors.Join(err, p.discard())
	}
	if err := os.Rename(p.Name(), p.target); err != nil {
		return errors.Join(err, p.discard())
	}
	return p.Close()
}

// discard removes the temporary.
func (p *pending) discard() error {
	err := os.Remove(p.Name())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, p.Close())
}

// sweep removes the temporaries that killed writers left in a cache's folder
// and returns how many. A temporary whose writer lives is locked and stays; so
// do all of them where locks or permissions are lacking, which harms nobody.
func sweep(dir string) (int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	swept := 0
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), pendingPrefix) && e.Type().IsRegular() && sweepOne(filepath.Join(dir, e.Name())) {
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
