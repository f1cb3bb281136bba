package target

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Fresh makes a folder of outputs of several commands without what an earlier run made in
// it and nobody changed since, and lists what stays, for Mark. One without the file mark
// of an earlier run is refused unless it is empty.
func Fresh(dir, mark string) (kept []string, err error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	case len(entries) > 0:
		made, err := os.ReadFile(filepath.Join(dir, mark))
		if err != nil || len(made) == 0 {
			return nil, refusal{fmt.Sprintf("--dir: %q exists and is not from an earlier run: choose a new folder",
				dir)}
		}
		if err := removeMade(dir, mark, strings.Fields(string(made))); err != nil {
			return nil, err
		}
	}
	return below(dir, mark)
}

// removeMade removes what a run made, as below listed it, unless it changed or has
// something else in it.
func removeMade(dir, mark string, made []string) error {
	root, err := os.OpenRoot(dir) // no link leads out of it
	if err != nil {
		return err
	}
	defer root.Close()
	there, err := below(dir, mark)
	if err != nil {
		return err
	}
	for _, file := range slices.Backward(made) {
		if _, name, _ := strings.Cut(file, ":"); slices.Contains(there, file) {
			if name, err = url.PathUnescape(name); err == nil {
				_ = root.Remove(name) // a folder with something else in it stays
			}
		}
	}
	return nil
}

// below lists the files and folders below dir but the mark, each with a hash of its content.
func below(dir, mark string) (files []string, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		name, notBelow := filepath.Rel(dir, path)
		if err := cmp.Or(err, notBelow); err != nil || name == "." || name == mark {
			return err
		}
		sum := "folder"
		if entry.Type().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			sum = fmt.Sprintf("%x", sha256.Sum256(text))
		} else if !entry.IsDir() {
			return nil // a link is none of ours
		}
		files = append(files, sum+":"+url.PathEscape(name))
		return nil
	})
	return files, err
}

// Mark writes down what the run made beside what was kept.
func Mark(dir, mark string, kept []string) error {
	files, err := below(dir, mark)
	files = slices.DeleteFunc(files, func(file string) bool { return slices.Contains(kept, file) })
	return errors.Join(err, os.WriteFile(filepath.Join(dir, mark), []byte(strings.Join(files, "\n")+"\n"), 0o644))
}
