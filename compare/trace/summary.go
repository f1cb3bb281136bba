package trace

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/compare/trace/wait"
	"github.com/moebalance/moebalance/router/input"
)

// A summary file holds summaries of exports: the table of every rank's kernels, and nothing of
// the capture's environment. Any number of a Trace, medians included, follows from it exactly as
// from the exports. It is one gzip stream:
//
//	magic line
//	uint32   length of the header, little endian as all numbers
//	header   JSON, see summaryHeader
//	events   of each rank of each export, in the header's order, see event
const (
	summaryMark  = "moebalance trace summary " // and a version
	summaryMagic = summaryMark + "4\n"
)

// summaryLimit bounds the header, which holds names and locations.
const summaryLimit = 1 << 28

type summaryHeader struct {
	Exports []summaryExport `json:"exports"`
}

// Summarize reads exports (or summaries) and writes one summary of them to w.
// Read takes summaries wherever it takes exports.
func Summarize(ctx context.Context, w io.Writer, paths []string, o Options) error {
	defer capture.KeepGC()()
	exports, err := summarizeAll(ctx, paths, o)
	if err != nil {
		return err
	}
	if _, err := newReduction(exports, o); err != nil {
		return err // what does not go together here cannot be merged later
	}
	return writeSummary(w, exports)
}

func writeSummary(w io.Writer, exports []*exportSummary) error {
	var head summaryHeader
	for _, d := range exports {
		e := d.summaryExport
		e.Ranks, e.Rules = nil, nil // of a summary that it was read from
		for _, l := range d.ranks {
			l.Events = len(l.events)
			e.Ranks = append(e.Ranks, l.summaryRank)
		}
		for _, rule := range d.rules {
			e.Rules = append(e.Rules, rule.String())
		}
		head.Exports = append(head.Exports, e)
	}
	text, err := json.Marshal(head)
	if err != nil {
		return err
	}
	if len(text) > summaryLimit {
		return fmt.Errorf("the names of ranges and kernels take %d bytes, want at most %d in a summary", len(text),
			summaryLimit)
	}
	zip, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	_, err = zip.Write(slices.Concat([]byte(summaryMagic), binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text))
	for _, d := range exports {
		for _, l := range d.ranks {
			for events := range slices.Chunk(l.events, eventsAtOnce) {
				err = errors.Join(err, binary.Write(zip, binary.LittleEndian, events))
			}
		}
	}
	return errors.Join(err, zip.Close())
}

// eventsAtOnce is how many events are written and read at a time.
const eventsAtOnce = 1 << 12

// IsSummary reports whether a file is a summary, of whatever version.
func IsSummary(path string) bool {
	return bytes.HasPrefix(capture.Head(path, int64(len(summaryMark))), []byte(summaryMark))
}

// readSummary reads a summary file. Everything in it is checked:
// a damaged one gives an error that wraps ErrDamaged or ErrTruncated.
func readSummary(path string) (exports []*exportSummary, err error) {
	err = inSummary(path, func(r io.Reader) (err error) {
		exports, err = decodeSummary(r)
		return err
	})
	return exports, err
}

// inSummary opens a summary file and puts the errors of reading it into words.
func inSummary(path string, read func(io.Reader) error) error {
	f, err := input.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	err = read(f)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &input.Error{File: path, Expected: "a whole summary", Found: "a truncated one", Try: "write it again",
			Err: capture.ErrTruncated}
	case err != nil:
		return &input.Error{File: path, Position: "damaged summary", Found: err.Error(), Try: "write it again",
			Err: capture.ErrDamaged}
	}
	return nil
}

func decodeSummary(r io.Reader) (exports []*exportSummary, err error) {
	head, in, err := summaryHead(r)
	if err = cmp.Or(err, head.check()); err != nil {
		return nil, err
	}
	for _, e := range head.Exports {
		d := &exportSummary{summaryExport: e}
		for _, text := range e.Rules {
			rule, err := kernel.ParseRule(text)
			if err != nil {
				return nil, err
			}
			d.rules = append(d.rules, rule)
		}
		d.classes = kernel.Classes(d.Names, d.rules)
		for _, s := range e.Ranks {
			l := &rankEvents{summaryRank: s}
			if l.events, err = readEvents(in, s.Events, len(d.Places), len(d.Names)); err != nil {
				return nil, err
			}
			d.ranks = append(d.ranks, l)
		}
		exports = append(exports, d)
	}
	if _, err := in.ReadByte(); err != io.EOF {
		return nil, cmp.Or(err, errors.New("bytes after its end"))
	}
	return exports, nil
}

// summaryHead reads the header; the events follow in what it returns.
func summaryHead(r io.Reader) (head summaryHeader, events *bufio.Reader, err error) {
	zip, err := gzip.NewReader(bufio.NewReader(r))
	if err != nil {
		return head, nil, err
	}
	in := bufio.NewReaderSize(zip, 1<<16)
	begin := make([]byte, len(summaryMagic)+4)
	if _, err := io.ReadFull(in, begin); err != nil {
		return head, nil, err
	}
	if magic := begin[:len(summaryMagic)]; string(magic) != summaryMagic {
		return head, nil, fmt.Errorf("want the line %q, have %q", summaryMagic, magic)
	}
	n := binary.LittleEndian.Uint32(begin[len(summaryMagic):])
	if n > summaryLimit {
		return head, nil, fmt.Errorf("want a header of at most %d bytes, have %d", summaryLimit, n)
	}
	var text bytes.Buffer
	if _, err := io.CopyN(&text, in, int64(n)); err != nil {
		return head, nil, err
	}
	return head, in, json.Unmarshal(text.Bytes(), &head)
}

// check holds the header against what writeSummary can have written, because
// everything behind it takes that for granted.
func (h summaryHeader) check() error {
	if len(h.Exports) == 0 {
		return errors.New("want at least one export, have none")
	}
	for _, e := range h.Exports {
		if len(e.Ranks) == 0 {
			return fmt.Errorf("want at least one rank of %q, have none", e.Export.Path)
		}
		for _, at := range e.Places {
			if min(at.Step, at.Layer, at.Expert) < NoID || !slices.Contains(kernel.Phases, at.Phase) ||
				at.Evidence >= ranges.Evidences {
				return fmt.Errorf("no kernel is in phase %q of step %d, layer %d, expert %d", at.Phase, at.Step,
					at.Layer, at.Expert)
			}
		}
		for _, s := range e.Ranks {
			if err := s.check(e.Export.Ranks); err != nil {
				return fmt.Errorf("rank %d of %q: %w", s.Rank.Rank, e.Export.Path, err)
			}
		}
	}
	return nil
}

// check holds a rank against the listed ones of its export.
func (s summaryRank) check(listed []int) error {
	if s.Rank.Rank < 0 || s.Rank.Rank >= capture.MaxRanks || !slices.Contains(listed, s.Rank.Rank) {
		return fmt.Errorf("want one of the ranks %v, from 0 to %d", listed, capture.MaxRanks-1)
	}
	if min(s.LaunchedNS, s.Hidden.NS, s.Hidden.Launches) < 0 {
		return fmt.Errorf("want no negative sum, have %d ns launched and %+v", s.LaunchedNS, s.Hidden)
	}
	if !slices.IsSortedFunc(s.Late, func(a, b wait.Late) int { return cmp.Compare(a.At, b.At) }) {
		return errors.New("lateness is not in the order of time")
	}
	for _, l := range s.Late {
		if max(l.At, l.NS) > capture.TimeLimit || l.At < -capture.TimeLimit || min(l.NS, l.GC, l.GIL) < 0 ||
			max(l.GC, l.GIL) > l.NS {
			return fmt.Errorf("no launch is late by %d ns at %d ns", l.NS, l.At)
		}
	}
	return nil
}

// readEvents reads the table of one rank. Memory grows with what is
// there, not with what the header promises.
func readEvents(in io.Reader, n, places, names int) (events []event, err error) {
	if n < 0 {
		return nil, fmt.Errorf("want 0 or more events, have %d", n)
	}
	last, total, limit := -capture.TimeLimit, int64(0), capture.TimeLimit
	for n > 0 {
		part := make([]event, min(n, eventsAtOnce))
		if err := binary.Read(in, binary.LittleEndian, part); err != nil {
			return nil, err
		}
		for _, e := range part {
			if e.Start < last || max(e.Start, e.NS/2) > limit || e.NS < 0 || min(e.Place, e.Name, e.Waited, e.Since) < 0 ||
				int(e.Place) >= places || int(e.Name) >= names || e.Queued < -1 || e.NS > math.MaxInt64-total {
				return nil, fmt.Errorf("no kernel is %+v", e)
			}
			last, total = e.Start, total+e.NS
		}
		events, n = append(events, part...), n-len(part)
	}
	return events, nil
}
