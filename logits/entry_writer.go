package logits

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/plan"
)

// castagnoli is the polynomial of CRC-32C, which processors compute in hardware.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksumText is how a checksum is written; always of the same length.
func checksumText(crc uint32) string { return fmt.Sprintf("crc32c:%08x", crc) }

// entryWriter writes entries of one spec. It keeps scratch space, so it is for one
// goroutine; what it holds grows with the largest number of tokens of a rank by
// k numbers per token, and not with the ranks.
type entryWriter struct {
	spec   Spec
	router *router.Router
	rows   *rowEncoder
	logits logitPair
	fewest int // experts per group from which the margin is satisfied
	ids    []int32
	row    []float32 // one row of decoded logits, all low between uses
	picked []int32
	chunk  []byte
	groups groupCounts
}

func newEntryWriter(s Spec) (*entryWriter, error) {
	r, err := router.NewRouter(s.Gate)
	if err != nil {
		return nil, err
	}
	shape, v := s.Gate.Shape, logitsOf(s.Gate)
	return &entryWriter{
		spec: s, router: r, rows: newRowEncoder(shape, s.DType, v), logits: v, fewest: marginSatisfied(s.Gate, v),
		row: slices.Repeat([]float32{v.low}, shape.Experts), picked: make([]int32, shape.TopK),
		groups: newGroupCounts(shape),
	}, nil
}

// written says what one written entry is.
type written struct {
	bytes       int64
	feasibility Feasibility
}

// write writes the entry of a rank: the tensors in file order as they are made,
// then, when its checksum is known, the header in front of them.
func (e *entryWriter) write(ctx context.Context, p plan.Plan, rank int, x extent, w io.WriterAt) (written, error) {
	shape := e.spec.Gate.Shape
	feasibility, err := e.assign(p, rank, x.rows)
	if err != nil {
		return written{}, err
	}
	meta := feasibility.describe(e.spec.identify(p.Name(), rank, x), checksumText(0))
	tensors := e.spec.tensors(x.rows)
	head, err := safetensors.Header(texts(meta), tensors)
	if err != nil {
		return written{}, err
	}
	out := crcWriter{w: w, at: int64(len(head))}
	e.writeIDs(&out)
	out.write(biasBytes(e.spec.Gate.Bias))
	for ids := range slices.Chunk(e.ids, e.rows.rows()*shape.TopK) {
		if ctx.Err() != nil {
			return written{}, context.Cause(ctx)
		}
		out.write(e.rows.encode(ids))
	}
	if out.err != nil {
		return written{}, out.err
	}
	meta.Checksum = checksumText(out.crc)
	if head, err = safetensors.Header(texts(meta), tensors); err != nil {
		return written{}, err
	}
	_, err = w.WriteAt(head, 0)
	return written{bytes: out.at, feasibility: feasibility}, err
}

// assign fills ids with the experts that a rank's rows get: those of the plan, as
// far as the gate lets it through.
func (e *entryWriter) assign(p plan.Plan, rank, rows int) (Feasibility, error) {
	slots := rows * e.spec.Gate.Shape.TopK
	e.ids = slices.Grow(e.ids[:0], slots)[:slots]
	p.Fill(e.ids, rank)
	return e.reconcile(e.ids)
}

// writeIDs writes the chosen experts as little-endian int32, in chunks.
func (e *entryWriter) writeIDs(out *crcWriter) {
	for ids := range slices.Chunk(e.ids, chunkBytes/4) {
		e.chunk = e.chunk[:0]
		for _, id := range ids {
			e.chunk = binary.LittleEndian.AppendUint32(e.chunk, uint32(id))
		}
		out.write(e.chunk)
	}
}

// crcWriter writes at a moving offset and keeps the checksum and the first error.
type crcWriter struct {
	w   io.WriterAt
	at  int64
	crc uint32
	err error
}

func (c *crcWriter) write(b []byte) {
	if c.err != nil || len(b) == 0 {
		return
	}
	c.crc = crc32.Update(c.crc, castagnoli, b)
	var n int
	n, c.err = c.w.WriteAt(b, c.at)
	c.at += int64(n)
}

// reconcile routes the planned rows that the two logits alone do not decide, and
// puts what the router picks in their place, so that an entry never promises
// what its logits do not do. A row of k distinct experts in no more groups than the
// gate allows is picked as it stands when no bias is large enough to matter.
func (e *entryWriter) reconcile(ids []int32) (Feasibility, error) {
	gate := e.spec.Gate
	f, least := Feasibility{}, gate.Shape.TopK
	for row := range slices.Chunk(ids, gate.Shape.TopK) {
		groups, fewest := e.groups.of(row)
		if fewest < e.fewest || groups > gate.Shape.GroupLimit() {
			projected, err := e.project(row)
			if err != nil {
				return f, err
			}
			if projected {
				f.ProjectedRows++
				_, fewest = e.groups.of(row)
			}
		}
		least = min(least, fewest)
	}
	f.LargestBias = largestBias(gate, e.logits, least)
	return f, nil
}

// projectRounds bounds how often a row is routed anew. The router's own pick at the
// high logit stays in front of what it had beaten already, so one round is enough
// for a row; only group scores can make it take more.
const projectRounds = 8

// project replaces the experts of a row by those that the router picks.
func (e *entryWriter) project(row []int32) (projected bool, err error) {
	for range projectRounds {
		same, err := e.picks(row, nil)
		if err != nil || same {
			return projected, err
		}
		projected = true
		copy(row, e.picked)
	}
	return projected, fmt.Errorf(
		"the correction bias of %s lets no set of experts stand: routing %v gives other ones each time", e.spec.Model,
		row)
}

// picks routes the logits that show a row and reports whether they bring back
// the same set. What the router picked is left in e.picked.
func (e *entryWriter) picks(row []int32, weights []float32) (same bool, err error) {
	for _, id := range row {
		e.row[id] = e.logits.high
	}
	err = e.router.Route(e.row, e.picked, weights)
	same = true
	for _, id := range e.picked {
		same = same && e.row[id] == e.logits.high
	}
	for _, id := range row {
		e.row[id] = e.logits.low
	}
	return same, err
}

// groupCounts counts a row's experts group by group. A shape without groups is one
// group.
type groupCounts struct {
	groupOf []int32 // by expert
	inGroup []int
}

func newGroupCounts(s router.Shape) groupCounts {
	c := groupCounts{groupOf: make([]int32, s.Experts), inGroup: make([]int, max(1, s.Groups))}
	for e := range c.groupOf {
		c.groupOf[e] = int32(e / s.GroupSize())
	}
	return c
}

// of is the number of groups that a row enters, and the least number of experts
// that it has in one of them.
func (c groupCounts) of(row []int32) (entered, fewest int) {
	clear(c.inGroup)
	for _, e := range row {
		c.inGroup[c.groupOf[e]]++
	}
	fewest = len(row)
	for _, n := range c.inGroup {
		if n > 0 {
			entered++
			fewest = min(fewest, n)
		}
	}
	return entered, fewest
}

// Entry is the logits of one rank for one batch size, in memory.
type Entry struct {
	Record
	// IDs are the experts of each token, row-major [Tokens, TopK], in the order
	// of the plan's slots.
	IDs []int32
	// Logits are the little-endian values, row-major [Tokens, Experts], in the
	// spec's element type.
	Logits []byte
}

// Row decodes the logits of one token into dst, which is grown as needed, and
// returns it. It panics for a token out of range.
func (e *Entry) Row(dst []float32, token int) []float32 {
	n := e.Spec.Gate.Shape.Experts
	dst = slices.Grow(dst[:0], n)[:n]
	stored := e.Spec.DType.stored()
	bytes := n * int(stored.Size())
	if err := safetensors.Decode(dst, e.Logits[token*bytes:(token+1)*bytes], stored); err != nil {
		panic(err) // lengths and type are of our own making
	}
	return dst
}

// ReadEntry reads an entry into memory and checks its record against its name, and
// its bytes against their checksum. The error wraps ErrDamaged where they differ.
func ReadEntry(path string) (*Entry, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, damage(path, err)
	}
	e, err := readEntry(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, damage(path, err)
	}
	return e, nil
}

func readEntry(f *safetensors.File) (*Entry, error) {
	r, err := readRecord(f)
	if err != nil {
		return nil, err
	}
	e := &Entry{Record: r}
	crc := uint32(0)
	for _, t := range f.Tensors() {
		b, _, err := f.Bytes(t.Name)
		if err != nil {
			return nil, err
		}
		crc = crc32.Update(crc, castagnoli, b)
		switch t.Name {
		case tensorIDs:
			e.IDs = decodeIDs(make([]int32, 0, len(b)/4), b)
		case tensorLogits:
			e.Logits = b
		}
	}
	return e, r.checkCRC(crc)
}

// checkCRC compares the checksum of the tensors' bytes with the record's.
func (r Record) checkCRC(crc uint32) error {
	if have := checksumText(crc); have != r.checksum {
		return r.wrong("", "content of checksum "+r.checksum, have)
	}
	return nil
}

// decodeIDs appends little-endian int32 values.
func decodeIDs(dst []int32, b []byte) []int32 {
	for ; len(b) >= 4; b = b[4:] {
		dst = append(dst, int32(binary.LittleEndian.Uint32(b)))
	}
	return dst
}
