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

// proveByLine judges a launch by the lines its ranks printed. Their absence
// from the normal arm counts only beside their presence in every launch of the
// perfect one: an engine that never prints the line says nothing by not printing
// it. Lines that do not name their rank must be as many as there are ranks: a
// variable that reached one rank only prints one.
func (t Treatment) proveByLine(arm Arm, lines []Found, ranks int, printed bool) []claim {
	say := func(rank int, s standing, format string, args ...any) claim {
		return claim{arm: arm, rank: rank, launches: 1, standing: s, evidence: fmt.Sprintf(format, args...)}
	}
	var claims []claim
	for _, f := range lines {
		if arm == Perfect && f.Rank == AllRanks && f.Times < ranks {
			claims = append(claims, say(f.Rank, unproved, "its log says %q %d×, without a rank, for %d ranks (--ranks 1 if one line speaks for all)", f.Text, f.Times, ranks))
			continue
		}
		claims = append(claims, say(f.Rank, balanced, "its log says %q (%d×)", f.Text, f.Times))
	}
	switch {
	case len(lines) > 0:
		return claims
	case arm == Perfect:
		return []claim{say(AllRanks, unproved, "no line of its log matches %q: was the switch seen? else give another --proof, --counts or --profile", t.Line)}
	case !printed:
		return []claim{say(AllRanks, unproved, "its log lacks the line that proves balance, and so does that of a perfect launch: give another --proof, --counts or --profile")}
	}
	return []claim{say(AllRanks, unbalanced, "its log lacks the line that the perfect arm prints")}
}

// findLines counts, per rank, the lines of an attempt's logs that match the
// pattern; nil without a pattern. A line is looked at up to 64 KiB.
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
