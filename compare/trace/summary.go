package trace

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/gob"
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
// from the exports. It is one gzip stream: a line with the version, and in gob's encoding the JSON of the summaries and
// the events of each rank of each export, in their order; numbers of events are little endian.
const (
	summaryMark  = "moebalance trace summary " // and a version
	summaryMagic = summaryMark + "10\n"
)

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
	zip, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // it fails for other levels than gzip has
	_, wrong := io.WriteString(zip, summaryMagic)
	to := gob.NewEncoder(zip)
	err = errors.Join(err, wrong, to.Encode(header))
	for _, d := range exports {
		for _, p := range d.Ranks {
			events, wrong := binary.Append(nil, binary.LittleEndian, p.events)
			err = errors.Join(err, wrong, to.Encode(events))
		}
	}
	return errors.Join(err, zip.Close())
}

// IsSummary reports whether a file is a summary, of whatever version.
func IsSummary(path string) bool {
	return bytes.HasPrefix(capture.Head(path, int64(len(summaryMark))), []byte(summaryMark))
}

// readSummary reads a summary file. Everything in it is checked.
func readSummary(path string) (exports []*exportSummary, err error) {
	f, info, err := input.Regular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	switch exports, err = decodeSummary(f, 1<<20+100*info.Size()); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, &input.Error{File: path, Expected: "a whole summary", Found: "a truncated one", Try: "write it again"}
	case err != nil:
		return nil, &input.Error{File: path, Position: "damaged summary", Found: err.Error(), Try: "write it again"}
	}
	return exports, nil
}

// decodeSummary decodes up to limit bytes: what was written is up to 5 times as long as its gzip stream, what was
// made to fill memory up to 1,000 times.
func decodeSummary(r io.Reader, limit int64) (exports []*exportSummary, err error) {
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
	from, header := gob.NewDecoder(bufio.NewReader(io.LimitReader(zip, limit))), []byte(nil)
	if err := from.Decode(&header); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(header, &exports); err != nil {
		return nil, err
	}
	if len(exports) == 0 || slices.ContainsFunc(exports, (*exportSummary).impossible) {
		return nil, errors.New("ranks, names or places that no export has")
	}
	for _, d := range exports {
		for _, p := range d.Ranks {
			var events []byte
			if err := from.Decode(&events); err != nil {
				return nil, err
			}
			p.events = make([]event, len(events)/binary.Size(event{}))
			if n, err := binary.Decode(events, binary.LittleEndian, p.events); err != nil || n != len(events) {
				return nil, errors.New("a part of a kernel")
			}
			if err := d.check(p.events); err != nil {
				return nil, err
			}
		}
	}
	if err := from.Decode(&header); err != io.EOF {
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
			return p == nil || p.Rank.Rank < 0 || p.Rank.Rank >= capture.MaxRanks ||
				!slices.Contains(e.Export.Ranks, p.Rank.Rank) || min(p.Hidden.NS, p.Hidden.Launches) < 0
		})
}

// check refuses events of a rank that writeSummary cannot have written.
func (e *exportSummary) check(events []event) error {
	last, total, limit := -capture.TimeLimit, int64(0), capture.TimeLimit
	for _, k := range events {
		if k.Start < last || max(k.Start, k.NS/2) > limit || k.NS < 0 || min(k.Place, k.Name, k.Waited, k.Since) < 0 ||
			int(k.Place) >= len(e.Places.Values) || int(k.Name) >= len(e.Names) || k.Queued < -1 ||
			int(k.Late) >= len(deedNames) || k.NS > math.MaxInt64-total {
			return fmt.Errorf("no kernel is %+v", k)
		}
		last, total = k.Start, total+k.NS
	}
	return nil
}
