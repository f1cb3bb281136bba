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

// A summary file holds summaries of exports: every kernel as its start,
// duration, location and name, and nothing of the capture's environment. Any
// number of a Trace, medians included, follows from it exactly as from the
// exports. It is one gzip stream:
//
//	magic line
//	uvarint  length of the header
//	header   JSON, see summaryHeader
//	per rank of each export, in the header's order, four columns of varints:
//	starts (differences, signed), durations, locations, names
const (
	summaryMark  = "moebalance trace summary " // and a version
	summaryMagic = summaryMark + "3\n"
)

// summaryLimit bounds the header, which holds names and locations.
const summaryLimit = 1 << 28

type summaryHeader struct {
	Exports []summaryExport `json:"exports"`
}

// summaryExport is what a summary says of an export before its events.
type summaryExport struct {
	Export      Export           `json:"export"`
	Arm         string           `json:"arm"` // normal, perfect or empty
	ArmEvidence string           `json:"arm_evidence"`
	World       int              `json:"world"`          // ranks of the whole run where the environment says, else 0
	Session     int64            `json:"session_utc_ns"` // UTC nanoseconds of the capture's zero; 0 when not recorded
	Names       []string         `json:"names"`
	Places      []location       `json:"places"`
	Ranks       []summaryRank    `json:"ranks"`                 // in a file alone
	Rules       []string         `json:"phase_rules,omitempty"` // in a file alone
	StepNames   map[int32]string `json:"step_names,omitempty"`  // the names of the ranges of steps
}

type summaryRank struct {
	Rank       Rank         `json:"rank"`
	Graphs     []graphEvent `json:"graphs,omitempty"`
	LaunchedNS int64        `json:"launched_ns"` // of kernels whose launch is recorded
	Events     int          `json:"events"`      // in a file alone: their number
	Late       []wait.Late  `json:"late,omitempty"`
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
	zip, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(zip, 1<<16)
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
	var buf [binary.MaxVarintLen64]byte
	put := func(v uint64) { _, err = out.Write(buf[:binary.PutUvarint(buf[:], v)]) }
	_, _ = out.WriteString(summaryMagic)
	put(uint64(len(text)))
	_, _ = out.Write(text)
	for _, d := range exports {
		for _, l := range d.ranks {
			last := int64(0)
			for _, e := range l.events {
				_, err = out.Write(buf[:binary.PutVarint(buf[:], e.start-last)])
				last = e.start
			}
			for _, c := range columns(len(d.Places), len(d.Names)) {
				for i := range l.events {
					put(c.get(&l.events[i]))
				}
			}
		}
	}
	return errors.Join(err, out.Flush(), zip.Close())
}

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

func decodeSummary(r io.Reader) ([]*exportSummary, error) {
	head, in, err := summaryHead(r)
	if err != nil {
		return nil, err
	}
	if err := head.check(); err != nil {
		return nil, err
	}
	exports := []*exportSummary{}
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
		if err == nil {
			err = errors.New("bytes after its end")
		}
		return nil, err
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
	magic := make([]byte, len(summaryMagic))
	if _, err := io.ReadFull(in, magic); err != nil {
		return head, nil, err
	}
	if string(magic) != summaryMagic {
		return head, nil, fmt.Errorf("want the line %q, have %q", summaryMagic, magic)
	}
	n, err := binary.ReadUvarint(in)
	if err != nil {
		return head, nil, err
	}
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
			if err := s.check(); err != nil {
				return fmt.Errorf("rank %d of %q: %w", s.Rank.Rank, e.Export.Path, err)
			}
			if !slices.Contains(e.Export.Ranks, s.Rank.Rank) {
				return fmt.Errorf("want one of the ranks %[2]v of %[1]q, have rank %[3]d", e.Export.Path,
					e.Export.Ranks, s.Rank.Rank)
			}
		}
	}
	return nil
}

func (s summaryRank) check() error {
	if s.Rank.Rank < 0 || s.Rank.Rank >= capture.MaxRanks {
		return fmt.Errorf("want a rank from 0 to %d", capture.MaxRanks-1)
	}
	if s.LaunchedNS < 0 {
		return fmt.Errorf("want no negative sum, have %d ns launched", s.LaunchedNS)
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
	for _, g := range s.Graphs {
		if g.NS < 0 || g.NS > 2*capture.TimeLimit || g.Start < -capture.TimeLimit || g.Start > capture.TimeLimit ||
			g.Step < NoID {
			return fmt.Errorf("no graph runs for %d ns at %d ns in step %d", g.NS, g.Start, g.Step)
		}
	}
	return nil
}

// readEvents reads the columns of one rank. Memory grows with what is
// there, not with what the header promises.
func readEvents(in *bufio.Reader, n, locations, names int) ([]kernelEvent, error) {
	if n < 0 {
		return nil, fmt.Errorf("want 0 or more events, have %d", n)
	}
	events := make([]kernelEvent, 0, min(n, 1<<16))
	last, total := int64(0), uint64(0)
	for range n {
		difference, err := binary.ReadVarint(in)
		if err != nil {
			return nil, err
		}
		if last += difference; last < -capture.TimeLimit || last > capture.TimeLimit {
			return nil, fmt.Errorf("an event starts at %d ns, beyond %d", last, capture.TimeLimit)
		}
		events = append(events, kernelEvent{start: last})
	}
	for _, c := range columns(locations, names) {
		for i := range events {
			u, err := binary.ReadUvarint(in)
			if err != nil {
				return nil, err
			}
			if u >= c.limit {
				return nil, fmt.Errorf("want a value below %d, have %d", c.limit, u)
			}
			c.set(&events[i], u)
		}
	}
	for i := range events {
		if total = min(total+uint64(events[i].duration), math.MaxInt64+1); total > math.MaxInt64 {
			return nil, errors.New("the sum of its times overflows 64 bits")
		}
	}
	return events, nil
}

// column is a number of every event, below a limit.
type column struct {
	limit uint64
	get   func(*kernelEvent) uint64
	set   func(*kernelEvent, uint64)
}

// columns are those behind the starts, in the order of the file.
func columns(locations, names int) []column {
	number := func(limit int, of func(*kernelEvent) *int32) column {
		return column{uint64(limit), func(e *kernelEvent) uint64 { return uint64(*of(e)) },
			func(e *kernelEvent, u uint64) { *of(e) = int32(u) }}
	}
	return []column{
		{2*uint64(capture.TimeLimit) + 1, func(e *kernelEvent) uint64 { return uint64(e.duration) },
			func(e *kernelEvent, u uint64) { e.duration = int64(u) }},
		number(locations, func(e *kernelEvent) *int32 { return &e.location }),
		number(names, func(e *kernelEvent) *int32 { return &e.name }),
		{1 << 32, func(e *kernelEvent) uint64 {
			if e.replayed {
				return uint64(e.queued+1)<<1 | 1
			}
			return uint64(e.queued+1) << 1
		}, func(e *kernelEvent, u uint64) { e.queued, e.replayed = int32(u>>1)-1, u&1 > 0 }},
		number(math.MaxInt32, func(e *kernelEvent) *int32 { return &e.waited }),
		number(math.MaxInt32, func(e *kernelEvent) *int32 { return &e.since }),
	}
}
