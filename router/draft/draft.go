// Package draft writes files whole or not at all: aside, under a name of their own, and then in
// their place. What killed writers left behind, a later one removes.
package draft

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Write makes a file whole or not at all: fill writes a draft beside the target, which then takes
// its place and permissions; a link is followed. The draft's name is the prefix and 16 random digits. Write
// does not wait for the disk, which takes longer than all the rest: a fill that has to, syncs.
func Write(prefix, target string, mode fs.FileMode, fill func(*os.File) error) error {
	there, err := os.Stat(target)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	place := Place(target)
	name := filepath.Join(filepath.Dir(place), fmt.Sprintf("%s%016x", prefix, rand.Uint64()))
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	if err == nil {
		if there != nil {
			err = f.Chmod(there.Mode().Perm())
		}
		err = cmp.Or(err, fill(f))
		if err = cmp.Or(err, f.Close()); err == nil {
			err = os.Rename(name, place)
		}
		if err != nil {
			err = errors.Join(err, os.Remove(name))
		}
	}
	if at := (*fs.PathError)(nil); errors.As(err, &at) && at.Path == name {
		at.Path = target // the name that was asked for
	}
	return err
}

// Place is an absolute path without links, of which the last element need not exist.
func Place(path string) string {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	if folder, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(folder, filepath.Base(path))
	}
	return path
}

// stale is the time without a write after which a draft's writer counts as dead.
const stale = time.Hour

var random = regexp.MustCompile(`^[0-9a-f]{16}$`)

// Sweep removes the drafts with this prefix that killed writers left in a folder. What cannot be
// removed does no harm.
func Sweep(dir, prefix string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), prefix)
		info, err := e.Info()
		if ours && random.MatchString(rest) && err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > stale {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
