package evidence

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
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

// FindLines counts, per rank, the lines of files that match the pattern of a claim, or of a
// failure; nil without a pattern. A line longer than 64 KiB is searched in pieces of that size.
func FindLines(claim, failed string, files []string) (found []ProofLine, err error) {
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

// proofOf is the line that a match is: its rank is the one that it names, else the one that the launcher put
// before it, else AllRanks.
func proofOf(line *regexp.Regexp, m [][]byte, text []byte) ProofLine {
	f := ProofLine{Rank: gain.AllRanks}
	if rank, at := input.LauncherRank(string(text[:min(len(text), 64)])); at > 0 {
		f.Rank = rank
	}
	for i, name := range line.SubexpNames() {
		switch n, err := strconv.Atoi(strings.TrimSpace(string(m[i]))); {
		case err == nil && name == "rank":
			f.Rank = n
		case err == nil && name == "ranks":
			f.Ranks = n
		}
	}
	masked := shown.Masked(string(m[0]))
	f.Text = strings.ToValidUTF8(masked[:min(len(masked), 200)], "")
	return f
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
	r := bufio.NewReaderSize(f, 64<<10)
	for {
		text, err := r.ReadSlice('\n')
		for _, m := range line.FindAllSubmatch(text, -1) { // ranks may write into one line
			f := proofOf(line, m, text)
			if max(f.Rank, f.Ranks) > router.MaxExperts {
				return fmt.Errorf("%s: proof line %q: want at most %d ranks", path, f.Text, router.MaxExperts)
			}
			if first, known := seen[f.Rank]; known {
				f = first
			}
			f.Times++
			seen[f.Rank] = f
		}
		if err == io.EOF {
			return nil
		}
		if err != nil && err != bufio.ErrBufferFull {
			return fmt.Errorf("reading %s: %w", path, err)
		}
	}
}
