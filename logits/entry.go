package logits

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"

	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router"
)

const (
	suffix = ".safetensors"
	// anyTokens stands in names and metadata of periodic entries for the number of tokens.
	anyTokens = "any"
)

// entryName is the name of an entry: "diagonal-rank3-any.safetensors".
func entryName(plan string, rank, tokens int) string {
	return fmt.Sprintf("%s-rank%d-%s%s", plan, rank, tokensText(tokens), suffix)
}

func tokensText(tokens int) string {
	if tokens == AnyTokens {
		return anyTokens
	}
	return strconv.Itoa(tokens)
}

var entryPattern = regexp.MustCompile(`^([a-z0-9.-]{1,64})-rank(0|[1-9]\d{0,3})-(any|0|[1-9]\d{0,7})\` + suffix + `$`)

// parseEntryName is the opposite of entryName.
func parseEntryName(name string) (plan string, rank, tokens int, ok bool) {
	m := entryPattern.FindStringSubmatch(name)
	if m == nil {
		return "", 0, 0, false
	}
	rank, _ = strconv.Atoi(m[2]) // by the pattern, neither fails
	if tokens = AnyTokens; m[3] != anyTokens {
		tokens, _ = strconv.Atoi(m[3])
	}
	return m[1], rank, tokens, true
}

// Feasibility says how many of an entry's planned choices the gate lets through.
type Feasibility struct {
	// ProjectedRows are the tokens whose experts are not the planned ones: the gate's
	// correction bias outweighs the logits, or the plan wants more groups than the gate
	// allows. The entry holds what the router picks instead.
	ProjectedRows int
	// LargestBias is the largest spread of a correction bias that the logits
	// tolerate; +Inf for methods that add none.
	LargestBias float64
}

// Status is "exact" where the router picks the planned experts of every token, or "projected".
func (f Feasibility) Status() string {
	if f.ProjectedRows > 0 {
		return "projected"
	}
	return "exact"
}

// tensors are an entry's, in the order of their bytes: four-byte types first, so that each
// begins where its element type can be mapped.
func (s Spec) tensors(rows int) []safetensors.Tensor {
	shape := s.Gate.Shape
	return []safetensors.Tensor{
		{Name: "expert_ids", DType: safetensors.I32, Shape: []int64{int64(rows), int64(shape.TopK)}},
		{Name: "logits", DType: s.DType.stored(), Shape: []int64{int64(rows), int64(shape.Experts)}},
	}
}

// chunkBytes is about how many bytes of an entry are made, written, read or compared
// at a time: few enough to stay in a processor's nearest caches all the while.
const chunkBytes = 1 << 17

// contentBytes are the bytes of the tensors.
func (s Spec) contentBytes(rows int) int64 {
	shape := s.Gate.Shape
	return int64(rows) * (4*int64(shape.TopK) + s.DType.stored().Size()*int64(shape.Experts))
}

// entryWriter writes entries of one spec. It keeps scratch space, so it is for one
// goroutine; what it holds grows with the largest number of tokens of a rank by
// k numbers per token, and not with the ranks.
type entryWriter struct {
	spec     Spec
	manifest string // its checksum
	router   *router.Router
	logits   logitPair
	low      []byte // an encoded row in which no expert is chosen
	ids      []int32
	row      []float32 // one row of decoded logits, all low between uses
	picked   []int32
	weights  []float32
	buf      []byte
	routed   map[string]routed // by the ids of a row: equal rows are routed once
}

// routed is what the router made of a planned row.
type routed struct {
	to     []int32 // nil where it picks the planned experts
	fewest int     // experts in one of its groups
}

// mostRouted bounds what a writer remembers: the tables of our plan have a few hundred rows
// a source.
const mostRouted = 1 << 16

func newEntryWriter(s Spec, manifest []byte) (*entryWriter, error) {
	r, err := router.NewRouter(s.Gate)
	if err != nil {
		return nil, err
	}
	shape, v := s.Gate.Shape, logitsOf(s.Gate)
	return &entryWriter{
		spec: s, manifest: checksum(crc32.ChecksumIEEE(manifest)), router: r, logits: v,
		low: bytes.Repeat(s.DType.encode(v.low), shape.Experts), row: slices.Repeat([]float32{v.low}, shape.Experts),
		picked: make([]int32, shape.TopK), weights: make([]float32, shape.TopK), routed: map[string]routed{},
	}, nil
}

// checksum is how a CRC-32 is written; always of the same length.
func checksum(crc uint32) string { return fmt.Sprintf("crc32:%08x", crc) }

// written says what one written entry is.
type written struct {
	bytes       int64
	feasibility Feasibility
}

// write writes the entry of a rank: the tensors in file order as they are made,
// then, when its checksum is known, the header in front of them.
func (e *entryWriter) write(ctx context.Context, p planned, rank int, w io.WriterAt) (written, error) {
	feasibility, err := e.assign(p, rank)
	if err != nil {
		return written{}, err
	}
	meta := map[string]string{
		"manifest": e.manifest, "plan": p.Name(), "rank": strconv.Itoa(rank), "tokens_per_rank": tokensText(p.tokens),
		"period": strconv.Itoa(p.Period), "layers": strconv.Itoa(p.Layers), "checksum": checksum(0),
		"bias_spread_survived": "any",
	}
	if !math.IsInf(feasibility.LargestBias, 1) {
		meta["bias_spread_survived"] = strconv.FormatFloat(feasibility.LargestBias, 'g', -1, 64)
	}
	tensors := e.spec.tensors(p.Rows)
	head, err := safetensors.Header(meta, tensors)
	if err != nil {
		return written{}, err
	}
	out := crcWriter{w: w, at: int64(len(head))}
	for ids := range slices.Chunk(e.ids, chunkBytes/4) {
		e.buf = e.buf[:0]
		for _, id := range ids {
			e.buf = binary.LittleEndian.AppendUint32(e.buf, uint32(id))
		}
		out.write(e.buf)
	}
	topK, high := e.spec.Gate.Shape.TopK, e.spec.DType.encode(e.logits.high)
	for ids := range slices.Chunk(e.ids, topK*max(1, chunkBytes/len(e.low))) {
		if ctx.Err() != nil {
			return written{}, context.Cause(ctx)
		}
		e.buf = e.buf[:0]
		for row := range slices.Chunk(ids, topK) {
			at := len(e.buf)
			e.buf = append(e.buf, e.low...)
			for _, id := range row {
				copy(e.buf[at+int(id)*len(high):], high)
			}
		}
		out.write(e.buf)
	}
	if out.err != nil {
		return written{}, out.err
	}
	meta["checksum"] = checksum(out.crc)
	if head, err = safetensors.Header(meta, tensors); err != nil {
		return written{}, err
	}
	_, err = w.WriteAt(head, 0)
	return written{bytes: out.at, feasibility: feasibility}, err
}

// crcWriter writes at a moving offset and keeps the checksum and the first error.
type crcWriter struct {
	w   io.WriterAt
	at  int64
	crc uint32
	err error
}

func (c *crcWriter) write(b []byte) {
	if c.err != nil {
		return
	}
	c.crc = crc32.Update(c.crc, crc32.IEEETable, b)
	var n int
	n, c.err = c.w.WriteAt(b, c.at)
	c.at += int64(n)
}

// assign fills ids with the experts that a rank's rows get: the planned ones, as far as the
// gate lets them through. Each row is routed by the exact method, and what the router picks
// takes its place, so that an entry never promises what its logits do not do.
func (e *entryWriter) assign(p planned, rank int) (Feasibility, error) {
	gate, slots := e.spec.Gate, p.Rows*e.spec.Gate.Shape.TopK
	e.ids = slices.Grow(e.ids[:0], slots)[:slots]
	p.Fill(e.ids, rank)
	f, least, key := Feasibility{}, gate.Shape.TopK, []byte(nil)
	for row := range slices.Chunk(e.ids, gate.Shape.TopK) {
		key = key[:0]
		for _, id := range row {
			key = binary.LittleEndian.AppendUint16(key, uint16(id))
		}
		r, known := e.routed[string(key)]
		if !known {
			var err error
			if r, err = e.route(row); err != nil {
				return f, err
			}
			if len(e.routed) < mostRouted {
				e.routed[string(key)] = r
			}
		}
		if r.to != nil {
			f.ProjectedRows++
			copy(row, r.to)
		}
		least = min(least, r.fewest)
	}
	f.LargestBias = largestBias(gate, e.logits, least)
	return f, nil
}

// mostRounds bounds how often a row is routed anew. The router's own pick at the
// high logit stays in front of what it had beaten already, so one round is enough
// for a row; only group scores can make it take more.
const mostRounds = 8

// route routes the logits that show a row, then the logits that show what was picked, until the
// router brings back the same set, with equal weights.
func (e *entryWriter) route(planned []int32) (routed, error) {
	row := slices.Clone(planned)
	for round := range mostRounds {
		for _, id := range row {
			e.row[id] = e.logits.high
		}
		err := e.router.Route(e.row, e.picked, e.weights)
		same := !slices.ContainsFunc(e.picked, func(id int32) bool { return e.row[id] != e.logits.high })
		for _, id := range row {
			e.row[id] = e.logits.low
		}
		switch {
		case err != nil:
			return routed{}, err
		case same && !fair(e.weights):
			return routed{}, fmt.Errorf("want equal weights of experts %v, have %v", e.picked, e.weights)
		case same && round == 0:
			return routed{fewest: e.fewest(row)}, nil
		case same:
			return routed{row, e.fewest(row)}, nil
		}
		copy(row, e.picked)
	}
	return routed{}, fmt.Errorf("the correction bias of %s lets no set of experts stand: routing %v gives other ones "+
		"each time", e.spec.Model, row)
}

// fair reports weights that are all equal.
func fair(weights []float32) bool { return slices.Min(weights) == slices.Max(weights) }

// fewest is the least number of experts that a row has in one of its groups.
func (e *entryWriter) fewest(row []int32) int {
	size, inGroup := int32(e.spec.Gate.Shape.GroupSize()), map[int32]int{}
	for _, id := range row {
		inGroup[id/size]++
	}
	return slices.Min(slices.Collect(maps.Values(inGroup)))
}
