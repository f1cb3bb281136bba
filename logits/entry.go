package logits

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
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
	rows     *rowEncoder
	logits   logitPair
	fewest   int // experts per group from which the margin is satisfied
	ids      []int32
	row      []float32 // one row of decoded logits, all low between uses
	picked   []int32
	weights  []float32
	chunk    []byte
	inGroup  []int
}

func newEntryWriter(s Spec, manifest []byte) (*entryWriter, error) {
	r, err := router.NewRouter(s.Gate)
	if err != nil {
		return nil, err
	}
	shape, v := s.Gate.Shape, logitsOf(s.Gate)
	return &entryWriter{
		spec: s, manifest: checksum(crc32.ChecksumIEEE(manifest)), router: r, rows: newRowEncoder(shape, s.DType, v),
		logits: v, fewest: marginSatisfied(s.Gate, v),
		row: slices.Repeat([]float32{v.low}, shape.Experts), picked: make([]int32, shape.TopK),
		weights: make([]float32, shape.TopK), inGroup: make([]int, max(1, shape.Groups)),
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
		e.chunk = e.chunk[:0]
		for _, id := range ids {
			e.chunk = binary.LittleEndian.AppendUint32(e.chunk, uint32(id))
		}
		out.write(e.chunk)
	}
	for ids := range slices.Chunk(e.ids, e.rows.rows()*e.rows.topK) {
		if ctx.Err() != nil {
			return written{}, context.Cause(ctx)
		}
		out.write(e.rows.encode(ids))
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
// gate lets them through. Planned rows that the two logits alone do not decide are routed,
// and what the router picks takes their place, so that an entry never promises what its
// logits do not do. A row of k distinct experts in no more groups than the gate allows is
// picked as it stands when no bias is large enough to matter.
func (e *entryWriter) assign(p planned, rank int) (Feasibility, error) {
	gate, slots := e.spec.Gate, p.Rows*e.spec.Gate.Shape.TopK
	e.ids = slices.Grow(e.ids[:0], slots)[:slots]
	p.Fill(e.ids, rank)
	f, least := Feasibility{}, gate.Shape.TopK
	for row := range slices.Chunk(e.ids, gate.Shape.TopK) {
		groups, fewest := e.groups(row)
		if fewest < e.fewest || groups > gate.Shape.GroupLimit() {
			projected, err := e.project(row)
			if err != nil {
				return f, err
			}
			if projected {
				f.ProjectedRows++
				_, fewest = e.groups(row)
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
		same, err := e.picks(row)
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
// the same set. What the router picked is left in e.picked and e.weights.
func (e *entryWriter) picks(row []int32) (same bool, err error) {
	for _, id := range row {
		e.row[id] = e.logits.high
	}
	err = e.router.Route(e.row, e.picked, e.weights)
	same = true
	for _, id := range e.picked {
		same = same && e.row[id] == e.logits.high
	}
	for _, id := range row {
		e.row[id] = e.logits.low
	}
	return same, err
}

// groups is the number of groups that a row enters, and the least number of experts that it
// has in one of them. A shape without groups is one group.
func (e *entryWriter) groups(row []int32) (entered, fewest int) {
	clear(e.inGroup)
	size, fewest := int32(e.spec.Gate.Shape.GroupSize()), len(row)
	for _, id := range row {
		e.inGroup[id/size]++
	}
	for _, n := range e.inGroup {
		if n > 0 {
			entered++
			fewest = min(fewest, n)
		}
	}
	return entered, fewest
}
