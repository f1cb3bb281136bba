package evidence

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/shown"
)

// ProofLine is how often a rank printed the treatment's proof line.
type ProofLine struct {
	Rank  int    `json:"rank"`            // −1 where the line does not name one
	Ranks int    `json:"ranks,omitempty"` // how many there are, where the line says it
	Times int    `json:"times"`
	Text  string `json:"text"` // what matched first
	// Failed marks a line that says that the treatment failed.
	Failed bool `json:"failed,omitempty"`
}

// FindLines counts, per rank, the lines of files that match the pattern of a claim, or that of a
// failure; nil without a pattern. Of a line, the first 64 KiB are searched.
func FindLines(claim, failed string, files []string) ([]ProofLine, error) {
	var found []ProofLine
	for i, pattern := range []string{claim, failed} {
		if pattern == "" {
			continue
		}
		line, err := regexp.Compile(pattern)
		if err != nil {
			return nil, fmt.Errorf("proof line: %w", err)
		}
		seen := make(map[int]ProofLine)
		for _, path := range files {
			if err := countLines(path, line, seen); err != nil {
				return nil, err
			}
		}
		for _, rank := range slices.Sorted(maps.Keys(seen)) {
			f := seen[rank]
			f.Failed = i > 0
			found = append(found, f)
		}
	}
	return found, nil
}

// launcherLabel is the rank that srun --label and mpirun --tag-output put before a line.
var launcherLabel = regexp.MustCompile(`^(?:\[\d+,(\d+)\]<std(?:out|err)>:|\s*(\d+): )`)

// rankOf is the rank that a matching line names, else the one that the launcher put
// before it, else AllRanks.
func rankOf(named, text []byte) int {
	words := [][]byte{named}
	if m := launcherLabel.FindSubmatch(text); m != nil {
		words = append(words, m[1], m[2])
	}
	for _, w := range words {
		if n, err := strconv.Atoi(string(bytes.TrimSpace(w))); err == nil {
			return n
		}
	}
	return gain.AllRanks
}

func countLines(path string, line *regexp.Regexp, seen map[int]ProofLine) error {
	f, err := input.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	group := func(m [][]byte, name string) []byte {
		if i := line.SubexpIndex(name); i >= 0 {
			return m[i]
		}
		return nil
	}
	r := bufio.NewReaderSize(f, 64<<10)
	for {
		text, err := r.ReadSlice('\n')
		if m := line.FindSubmatch(text); m != nil {
			rank := rankOf(group(m, "rank"), text)
			f, known := seen[rank]
			if !known {
				masked := shown.Masked(string(m[0]))
				ranks, _ := strconv.Atoi(string(group(m, "ranks"))) // 0 where it names none
				f = ProofLine{Rank: rank, Ranks: ranks, Text: strings.ToValidUTF8(masked[:min(len(masked), 200)], "")}
			}
			f.Times++
			seen[rank] = f
		}
		if err == io.EOF {
			return nil
		}
		if err != nil && err != bufio.ErrBufferFull {
			return fmt.Errorf("reading %s: %w", path, err)
		}
	}
}

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

// Hash is the file at a path, hashed.
func (h Hasher) Hash(path string) (File, error) {
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

// Files hashes all of paths, of which relative ones start from the folder.
func (h Hasher) Files(folder string, paths []string) ([]File, error) {
	var files []File
	for _, path := range paths {
		f, err := h.Hash(InFolder(folder, path))
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// InFolder is a path, made absolute from the folder if it is relative.
func InFolder(folder, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}
