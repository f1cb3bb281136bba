package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// side is the files of one arm.
type side struct {
	paths   []string
	exports bool // nsys exports or summaries; otherwise benchmark reports
}

// openSide resolves an argument: a file, a folder, a pattern, or several of
// them with commas between.
func openSide(arg string) (side, error) {
	var s side
	for _, part := range splitList(arg) {
		paths, err := resolve(part)
		if err != nil {
			return s, err
		}
		s.paths = append(s.paths, paths...)
	}
	for i, path := range s.paths {
		head, err := headOf(path)
		if err != nil {
			return s, err
		}
		export := looksLikeExport(path, head)
		switch {
		case i > 0 && export != s.exports:
			return s, fmt.Errorf("%s and %s are not of a kind: want nsys exports only, or benchmark reports only", s.paths[0], path)
		case slices.Contains(s.paths[:i], path):
			return s, usagef("%s is named twice", path)
		}
		s.exports = export
	}
	return s, nil
}

// splitList splits at commas, unless the whole is the name of a file.
func splitList(arg string) []string {
	if _, err := os.Stat(arg); err == nil {
		return []string{arg}
	}
	return strings.Split(arg, ",")
}

// resolve lists the files that a path, folder or pattern stands for, in the
// order of their names. Of a folder with exports only those count.
func resolve(path string) ([]string, error) {
	if path == "" {
		return nil, usagef("want the name of a file, have none")
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.IsDir():
		return []string{path}, nil
	case err == nil:
		return folderFiles(path)
	case !strings.ContainsAny(path, "*?["):
		return nil, fmt.Errorf("want a file, a folder or a pattern: %w", err)
	}
	found, err := filepath.Glob(path)
	if err != nil {
		return nil, usagef("pattern %q: %w", path, err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no file matches %q", path)
	}
	return found, nil
}

func folderFiles(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var all, exports []string
	for _, e := range entries {
		if !e.Type().IsRegular() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		path := filepath.Join(folder, e.Name())
		all = append(all, path)
		if filepath.Ext(path) == ".sqlite" {
			exports = append(exports, path)
		}
	}
	switch {
	case len(exports) > 0:
		return exports, nil
	case len(all) > 0:
		return all, nil
	}
	return nil, fmt.Errorf("folder %s holds no file", folder)
}

// exportMarks begin the files that package nsys reads, or refuses with a better
// reason than ours.
var exportMarks = []string{"SQLite format 3\x00", "\x1f\x8b", "version https://git-lfs"}

// headOf is the first bytes of a file, fewer if it is shorter.
func headOf(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, 64)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return head[:n], nil
}

// looksLikeExport tells an nsys export, a summary, or what was meant to be one.
func looksLikeExport(path string, head []byte) bool {
	for _, mark := range exportMarks {
		if bytes.HasPrefix(head, []byte(mark)) {
			return true
		}
	}
	ext := filepath.Ext(path)
	return ext == ".sqlite" || ext == ".nsys-rep" || ext == ".qdrep"
}
