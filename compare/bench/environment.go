package bench

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
)

// fileHasher hashes files, and not again while size and time of change stay.
type fileHasher map[fileState]File

type fileState struct {
	path           string
	bytes, changed int64 // modification time, ns
}

func (h fileHasher) hash(path string) (File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return File{}, err
	}
	if !info.Mode().IsRegular() {
		return File{}, fmt.Errorf("%s is not a regular file", path)
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
	h[state] = File{Path: path, SHA256: hex.EncodeToString(sum.Sum(nil)), Bytes: n}
	return h[state], nil
}

// files hashes all of paths, of which relative ones start from the folder.
func (h fileHasher) files(folder string, paths []string) ([]File, error) {
	var files []File
	for _, path := range paths {
		f, err := h.hash(inFolder(folder, path))
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}
