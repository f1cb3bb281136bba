package evidence

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// File is a file that must be the same in every launch.
type File struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// Hasher hashes files, and not again while size and time of change stay.
type Hasher map[fileState]File

type fileState struct {
	path           string
	bytes, changed int64 // modification time, ns
}

// Files hashes all of paths, of which relative ones start from the folder.
func (h Hasher) Files(folder string, paths []string) (files []File, err error) {
	for _, path := range paths {
		f, err := h.Hash(InFolder(folder, path))
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// Hash is the file at a path, hashed.
func (h Hasher) Hash(path string) (File, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return File{}, err
	}
	state := fileState{path, info.Size(), info.ModTime().UnixNano()}
	if known, ok := h[state]; ok {
		return known, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err != nil {
		return File{}, fmt.Errorf("hashing %s: %w", path, err)
	}
	h[state] = File{Path: path, SHA256: fmt.Sprintf("%x", sum.Sum(nil)), Bytes: n}
	return h[state], nil
}

// InFolder is a path, made absolute from the folder if it is relative.
func InFolder(folder, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}
