package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// checkFile finds before any work is done that the file of a flag could not be
// written.
func checkFile(flag, path string) error {
	switch dir := filepath.Dir(path); {
	case path == "":
		return nil
	case isDir(path):
		return usagef("%s: want a file, but %q is a folder", flag, path)
	case !isDir(dir):
		return usagef("%s: no folder %q to write %q in", flag, dir, filepath.Base(path))
	}
	return nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// writeFile writes a file whole or not at all, and with the permissions that it
// has, or any new file would get. Links are followed. What is no regular file, such
// as a pipe or a device, stays what it is and is written as the text comes.
func writeFile(path string, render func(io.Writer) error) error {
	there, err := os.Stat(path)
	switch {
	case err == nil && !there.Mode().IsRegular():
		return writeThrough(path, render)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	target := linked(path)
	draft, err := createBeside(target)
	if err != nil {
		return err
	}
	if there != nil {
		err = draft.Chmod(there.Mode().Perm())
	}
	if err == nil {
		err = render(draft)
	}
	if closed := draft.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(draft.Name(), target)
	}
	if err != nil {
		_ = os.Remove(draft.Name()) // what went wrong matters more
	}
	return err
}

func writeThrough(path string, render func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(render(f), f.Close())
}

// linked is where links from a path end, of which Stat has seen that they do. What
// they name need not exist.
func linked(path string) string {
	for {
		to, err := os.Readlink(path)
		if err != nil {
			return path // no link
		}
		if !filepath.IsAbs(to) {
			to = filepath.Dir(path) + string(filepath.Separator) + to // not Join: after a link, ".." is another folder
		}
		path = to
	}
}

// createBeside makes a file of a new name in the folder of path. The errors are
// about path, the name that was asked for.
func createBeside(path string) (*os.File, error) {
	name := fmt.Sprintf(".moebalance-%016x", rand.Uint64())
	f, err := os.OpenFile(filepath.Join(filepath.Dir(path), name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	var at *fs.PathError
	if errors.As(err, &at) {
		at.Path = path
	}
	return f, err
}
