package bench

import (
	"bufio"
	"bytes"
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

	"github.com/moebalance/moebalance/compare/bench/launch"
)

// proveByLine judges a launch by the proof lines its ranks printed. Their absence
// from the normal arm is evidence only beside their presence in every launch of the
// perfect one: an engine that never prints the line says nothing by not printing
// it. Lines that do not name their rank must be as many as there are ranks: a
// variable that reached one rank only prints one.
func (t Treatment) proveByLine(arm Arm, lines []Found, ranks int, printed bool) []rankProof {
	proof := func(rank int, s proofStatus, format string, args ...any) rankProof {
		return rankProof{arm: arm, rank: rank, launches: 1, status: s, evidence: fmt.Sprintf(format, args...)}
	}
	var proofs []rankProof
	for _, f := range lines {
		if arm == Perfect && f.Rank == AllRanks && f.Times < ranks {
			proofs = append(proofs, proof(f.Rank, unproved, "log line %q %d× without a rank, for %d ranks (--ranks 1 if one line covers all)", f.Text, f.Times, ranks))
			continue
		}
		proofs = append(proofs, proof(f.Rank, balanced, "log line %q (%d×)", f.Text, f.Times))
	}
	switch {
	case len(lines) > 0:
		return proofs
	case arm == Perfect:
		return []rankProof{proof(AllRanks, unproved, "no log line matches %q: check that the ranks see the switch, or give another %s", t.Line, otherProofs)}
	case !printed:
		return []rankProof{proof(AllRanks, unproved, "neither arm printed the proof line, so its absence proves nothing: give another %s", otherProofs)}
	}
	return []rankProof{proof(AllRanks, unbalanced, "the log lacks the proof line that the perfect arm prints")}
}

// findLines counts, per rank, the lines of an attempt's logs that match the
// pattern; nil without a pattern. Of a line, the first 64 KiB are searched.
func findLines(pattern, folder string) ([]Found, error) {
	if pattern == "" {
		return nil, nil
	}
	line, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("proof line: %w", err)
	}
	seen := make(map[int]Found)
	for _, name := range launch.Logs {
		if err := countLines(filepath.Join(folder, name), line, seen); err != nil {
			return nil, err
		}
	}
	found := slices.Collect(maps.Values(seen))
	slices.SortFunc(found, func(a, b Found) int { return a.Rank - b.Rank })
	return found, nil
}

func countLines(path string, line *regexp.Regexp, seen map[int]Found) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	group := line.SubexpIndex("rank")
	r := bufio.NewReaderSize(f, 64<<10)
	for {
		text, err := r.ReadSlice('\n')
		if m := line.FindSubmatch(text); m != nil {
			rank := AllRanks
			if group >= 0 && len(m[group]) > 0 {
				if n, err := strconv.Atoi(string(bytes.TrimSpace(m[group]))); err == nil {
					rank = n
				}
			}
			f, known := seen[rank]
			if !known {
				f = Found{Rank: rank, Text: strings.ToValidUTF8(string(m[0][:min(len(m[0]), 200)]), "")}
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
