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
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
	"github.com/moebalance/moebalance/router/shown"
)

// proveByLine judges a launch by the proof lines its ranks printed, of which each must
// print its own: lines that do not name their rank may all be of one rank. Their
// absence from the normal arm is evidence only beside their presence in every launch
// of the perfect one: an engine that never prints the line says nothing by not printing
// it. A launch in which the engine reports a failure claims nothing.
func (s Spec) proveByLine(arm gain.Arm, lines []Found, ranks int, printed bool) []rankProof {
	proof := func(rank int, s proofStatus, format string, args ...any) rankProof {
		return rankProof{arm: arm, rank: rank, launches: 1, status: s, evidence: fmt.Sprintf(format, args...)}
	}
	failed := slices.IndexFunc(lines, func(f Found) bool { return f.Failed })
	named := 0
	for _, f := range lines {
		if f.Rank != gain.AllRanks {
			named++
		}
	}
	var proofs []rankProof
	for _, f := range lines {
		status, doubt := unproved, ""
		switch {
		case arm == gain.Normal:
			status = balanced
		case failed >= 0:
			doubt = fmt.Sprintf(", but the engine says %q", lines[failed].Text)
		case s.Treatment.firstGeneration(f.Text) && s.groupLimited() != "":
			doubt = fmt.Sprintf(" is of TensorRT-LLM's first planner, which ignores the expert groups of %s and is not balanced there", s.groupLimited())
		case ranks == 0:
			doubt = fmt.Sprintf(" seen on %s; say --ranks N", quantity.Count(max(1, named), "rank"))
		case f.Rank == gain.AllRanks && ranks > 1:
			doubt = fmt.Sprintf(" names no rank, so %d× are not %d ranks: name the rank by (?P<rank>…) in --proof, label the output by rank (srun --label, mpirun --tag-output), or give --counts or --profile", f.Times, ranks)
		default:
			status = balanced
		}
		proofs = append(proofs, proof(f.Rank, status, "log line %q (%d×)%s", f.Text, f.Times, doubt))
	}
	switch {
	case len(lines) > 0:
		return proofs
	case arm == gain.Perfect:
		return []rankProof{proof(gain.AllRanks, unproved,
			"no log line matches %s: check that the ranks see the switch, or give another %s", s.Treatment.Line,
			otherProofs)}
	case !printed:
		return []rankProof{proof(gain.AllRanks, unproved,
			"neither arm printed the proof line, so its absence proves nothing: give another %s", otherProofs)}
	}
	return []rankProof{proof(gain.AllRanks, unbalanced, "the log lacks the proof line that the perfect arm prints")}
}

// firstGeneration reports whether a proof line is of TensorRT-LLM's first planner, which
// did not name the rank and knew no expert groups.
func (t Treatment) firstGeneration(line string) bool {
	return t.Failed != "" && strings.Contains(line, "Precomputing perfect router") &&
		!strings.Contains(line, "ep_rank=")
}

// groupLimited is the model that the commands name whose routing is limited to groups
// of experts, empty where they name none: a preset's name, perhaps with a suffix, or a
// folder with its config.json.
func (s Spec) groupLimited() string {
	for _, word := range slices.Concat(s.Command.Server, s.Command.Normal, s.Command.Perfect) {
		if _, value, ok := strings.Cut(word, "="); ok {
			word = value
		}
		if config, err := input.ReadFile(filepath.Join(inFolder(s.Folder, word), "config.json"), 64<<20); err == nil {
			if m, err := router.ParseConfig(config, ""); err == nil && m.Shape.Grouped() {
				return word
			}
		}
		base := strings.ToLower(filepath.Base(word))
		for _, m := range router.Models() {
			if m.Shape.Grouped() && strings.HasPrefix(base, m.Name) {
				return word
			}
		}
	}
	return ""
}

// findLines counts, per rank, the lines of an attempt's logs that claim the treatment
// or say that it failed; nil without a pattern. Of a line, the first 64 KiB are searched.
func (t Treatment) findLines(folder string) ([]Found, error) {
	var found []Found
	for i, pattern := range []string{t.Line, t.Failed} {
		if pattern == "" {
			continue
		}
		line, err := regexp.Compile(pattern)
		if err != nil {
			return nil, fmt.Errorf("proof line: %w", err)
		}
		seen := make(map[int]Found)
		var files []string
		for _, name := range launch.Logs {
			files = append(files, filepath.Join(folder, name))
		}
		if t.Records != "" {
			claims, _ := filepath.Glob(filepath.Join(folder, outName, t.Records, "*.json")) // the pattern is ours
			files = append(files, claims...)
		}
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

func countLines(path string, line *regexp.Regexp, seen map[int]Found) error {
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
				f = Found{Rank: rank, Ranks: ranks, Text: strings.ToValidUTF8(masked[:min(len(masked), 200)], "")}
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
