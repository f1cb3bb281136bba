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
	"github.com/moebalance/moebalance/router/input"
)

// A summary file holds summaries of exports: the table of every rank's kernels, and nothing of
// the capture's environment. Any number of a Trace, medians included, follows from it exactly as
// from the exports. It is one gzip stream:
//
//	magic line
//	header   the summaries as a line of JSON
//	events   of each rank of each export, in the header's order, see event; numbers are little endian
const (
	summaryMark  = "moebalance trace summary " // and a version
	summaryMagic = summaryMark + "9\n"
)

// summaryLimit bounds the header, which holds names and locations.
const summaryLimit = 1 << 28

// Summarize reads exports (or summaries) and writes one summary of them to w.
// Read takes summaries wherever it takes exports.
func Summarize(ctx context.Context, w io.Writer, paths []string, o Options) error {
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
	header, err := json.Marshal(exports)
	if len(header) >= summaryLimit {
		return fmt.Errorf("%d exports have names and places of over %d bytes: give fewer", len(exports), summaryLimit)
	}
	zip, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // it fails for other levels than gzip has
	_, wrong := fmt.Fprintf(zip, "%s%s\n", summaryMagic, header)
	err = cmp.Or(err, wrong)
	for _, d := range exports {
		for _, p := range d.Ranks {
			for events := range slices.Chunk(p.events, eventsAtOnce) {
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

// readSummary reads a summary file. Everything in it is checked.
func readSummary(path string) (exports []*exportSummary, err error) {
	f, err := input.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	switch exports, err = decodeSummary(f); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, &input.Error{File: path, Expected: "a whole summary", Found: "a truncated one", Try: "write it again"}
	case err != nil:
		return nil, &input.Error{File: path, Position: "damaged summary", Found: err.Error(), Try: "write it again"}
	}
	return exports, nil
}

func decodeSummary(r io.Reader) (exports []*exportSummary, err error) {
	zip, err := gzip.NewReader(bufio.NewReader(r))
	if err != nil {
		return nil, err
	}
	magic := make([]byte, len(summaryMagic))
	if _, err := io.ReadFull(zip, magic); err != nil {
		return nil, err
	}
	if string(magic) != summaryMagic {
		return nil, fmt.Errorf("want the line %q, have %q", summaryMagic, magic)
	}
	header := json.NewDecoder(io.LimitReader(zip, summaryLimit))
	if err := header.Decode(&exports); err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(io.MultiReader(header.Buffered(), zip), 1<<16)
	if _, err := in.ReadByte(); err != nil { // the end of the line
		return nil, err
	}
	if len(exports) == 0 || slices.ContainsFunc(exports, (*exportSummary).impossible) {
		return nil, errors.New("ranks, names or places that no export has")
	}
	for _, d := range exports {
		for _, p := range d.Ranks {
			if p.events, err = readEvents(in, p.Events, len(d.Places.Values), len(d.Names)); err != nil {
				return nil, err
			}
		}
	}
	if _, err := in.ReadByte(); err != io.EOF {
		return nil, cmp.Or(err, errors.New("bytes after its end"))
	}
	return exports, nil
}

// impossible reports a header that writeSummary cannot have written: nothing behind it checks that again.
func (e *exportSummary) impossible() bool {
	unknown := func(p Phase) bool { return !slices.Contains(kernel.Phases, p) }
	return e == nil || len(e.Ranks) == 0 || len(e.Classes) != len(e.Names) ||
		slices.ContainsFunc(e.Classes, func(c kernel.Class) bool { return unknown(c.Phase) }) ||
		slices.ContainsFunc(e.Places.Values, func(at location) bool {
			return min(at.Step, at.Layer, at.Expert) < NoID || unknown(at.Phase)
		}) ||
		slices.ContainsFunc(e.Ranks, func(p *rankEvents) bool {
			return p == nil || p.Events < 0 || p.Rank.Rank < 0 || p.Rank.Rank >= capture.MaxRanks ||
				!slices.Contains(e.Export.Ranks, p.Rank.Rank) || min(p.Hidden.NS, p.Hidden.Launches) < 0
		})
}

// readEvents reads the table of one rank. Memory grows with what is
// there, not with what the header promises.
func readEvents(in io.Reader, n, places, names int) (events []event, err error) {
	last, total, limit := -capture.TimeLimit, int64(0), capture.TimeLimit
	for n > 0 {
		part := make([]event, min(n, eventsAtOnce))
		if err := binary.Read(in, binary.LittleEndian, part); err != nil {
			return nil, err
		}
		for _, e := range part {
			if e.Start < last || max(e.Start, e.NS/2) > limit || e.NS < 0 || min(e.Place, e.Name, e.Waited, e.Since) < 0 ||
				int(e.Place) >= places || int(e.Name) >= names || e.Queued < -1 || int(e.Late) >= len(deedNames) ||
				e.NS > math.MaxInt64-total {
				return nil, fmt.Errorf("no kernel is %+v", e)
			}
			last, total = e.Start, total+e.NS
		}
		events, n = append(events, part...), n-len(part)
	}
	return events, nil
}
