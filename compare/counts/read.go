package counts

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Read reads the expert statistics at path, a file or a folder, whatever engine
// wrote them. Errors name the path, say what was found and what would have been
// understood.
func Read(path string) (*Record, error) {
	r, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("reading expert statistics %q: %w", path, err)
	}
	return r, nil
}

func read(path string) (*Record, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, bare(err)
	}
	if info.IsDir() {
		return readFolder(path)
	}
	return nil, fmt.Errorf("not a folder")
}

func readFolder(dir string) (*Record, error) {
	if _, err := os.Stat(filepath.Join(dir, tensorrtMeta)); err == nil {
		return readTensorRT(dir)
	}
	return nil, fmt.Errorf("this folder holds no statistics that are understood: want %s with rank0.safetensors, … (TensorRT-LLM)", tensorrtMeta)
}

// bare takes the path off an error of package os, for messages that name it
// already.
func bare(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// readWhole reads a file of at most maxFile bytes.
func readWhole(path string) (text []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, bare(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, bare(err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("want at most %d bytes, have more", maxFile)
	}
	return text, nil
}
