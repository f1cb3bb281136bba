package evidence

import (
	"bufio"
	"bytes"
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
		for _, m := range line.FindAllSubmatch(text, -1) { // ranks may write into one line
			rank := rankOf(group(m, "rank"), text)
			f, known := seen[rank]
			if !known {
				masked := shown.Masked(string(m[0]))
				ranks, _ := strconv.Atoi(string(group(m, "ranks"))) // 0 where it names none
				f = ProofLine{Rank: rank, Ranks: ranks, Text: strings.ToValidUTF8(masked[:min(len(masked), 200)], "")}
			}
			if max(rank, f.Ranks) > router.MaxExperts {
				return fmt.Errorf("%s: proof line %q: want at most %d ranks", path, f.Text, router.MaxExperts)
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
