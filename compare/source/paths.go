package source

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/router/input"
)

// Repeated is the first path that is the same file as one before it, by whatever name.
func Repeated(paths []string) (path string, ok bool) {
	for i, path := range paths {
		if _, ok := shared(paths[i:i+1], paths[:i]); ok {
			return path, true
		}
	}
	return "", false
}

// shared is the first of a that is the same file as one of b. Files that do not
// exist are left to whoever reads them.
func shared(a, b []string) (path string, ok bool) {
	var files []os.FileInfo
	for _, path := range b {
		if info, err := os.Stat(path); err == nil {
			files = append(files, info)
		}
	}
	for _, path := range a {
		info, err := os.Stat(path)
		if err == nil && slices.ContainsFunc(files, func(other os.FileInfo) bool { return os.SameFile(info, other) }) {
			return path, true
		}
	}
	return "", false
}

// splitList splits at commas, unless the whole is the name of a file.
func splitList(arg string) []string {
	if _, err := os.Stat(arg); err == nil {
		return []string{arg}
	}
	return strings.Split(arg, ",")
}

// Files lists the files that a path, folder or pattern names, sorted by name. In a
// folder, .sqlite exports take precedence over .nsys-rep reports, and both over
// other files.
func Files(path string) ([]string, error) {
	if path == "" {
		return nil, usagef("want the name of a file, have none")
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.IsDir():
		return []string{path}, nil
	case err == nil:
		return FolderFiles(path)
	case !isPattern(path):
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

func isPattern(path string) bool { return strings.ContainsAny(path, "*?[") }

// Exports resolves the arguments that are a folder or a pattern; other arguments
// stay as they are.
func Exports(args []string) (paths []string, err error) {
	for _, arg := range args {
		found := []string{arg}
		if info, missing := os.Stat(arg); missing == nil && info.IsDir() || missing != nil && isPattern(arg) {
			if found, err = Files(arg); err != nil {
				return nil, err
			}
		}
		paths = append(paths, found...)
	}
	return paths, nil
}

// FolderFiles lists the files of a folder that is no campaign, as Files does.
func FolderFiles(folder string) ([]string, error) {
	if bench.IsCampaign(folder) {
		return nil, usagef("%s is a campaign, which holds both arms: 'moebalance bench --resume %s' shows its gain, 'moebalance report %s' draws it", folder, folder, folder)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	byKind := map[string][]string{}
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		info, err := os.Stat(path) // follows links, which cluster jobs like to leave
		if err != nil || !info.Mode().IsRegular() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		ext := filepath.Ext(e.Name())
		if ext != ".sqlite" && ext != ".nsys-rep" {
			ext = ""
		}
		byKind[ext] = append(byKind[ext], path)
	}
	for _, ext := range []string{".sqlite", ".nsys-rep", ""} {
		if len(byKind[ext]) > 0 {
			return byKind[ext], nil
		}
	}
	return nil, fmt.Errorf("folder %s contains no file", folder)
}

// Head is the first bytes of a regular file, at most 64.
func Head(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &input.Error{File: path, Expected: "a regular file", Found: "mode " + info.Mode().Type().String()}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, 64))
	if err != nil {
		return nil, &input.Error{File: path, Err: err}
	}
	return head, nil
}
