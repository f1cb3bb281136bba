package logits

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/plan"
)

// About is what results say of a spec.
type About struct {
	Model   string        `json:"model"`
	Method  router.Method `json:"method"`
	Experts int           `json:"experts"`
	TopK    int           `json:"top_k"`
	Ranks   int           `json:"ranks"`
	Mode    router.Mode   `json:"mode"`
	DType   DType         `json:"dtype"`
}

func (s Spec) about() About {
	return About{s.Model, s.Gate.Method, s.Gate.Shape.Experts, s.Gate.Shape.TopK, s.Layout.Ranks(), s.Mode, s.DType}
}

// Entry is an entry of a cache, and what was found and done about it. A file that is none has
// a path and a status alone.
type Entry struct {
	Path string `json:"path"`
	About
	Plan          string        `json:"plan"` // with its version
	Rank          router.OptInt `json:"rank"`
	TokensPerRank router.OptInt `json:"tokens_per_rank"` // null in a periodic entry, which has the next one
	Extent        *plan.Extent  `json:"table"`
	Bytes         int64         `json:"bytes"`
	New           bool          `json:"new"`    // nothing was there
	Damage        string        `json:"damage"` // what was wrong with the file that was replaced
	// Status is exact where the router picks the planned experts of every token, projected where it picks
	// others for some, because the plan wants more groups than the gate allows: the entry holds what the
	// router picks. Else "failed: " and why.
	Status        string `json:"status"`
	ProjectedRows int    `json:"projected_rows"` // tokens whose experts are not the planned ones
	// LargestBias is the largest spread of a correction bias that the logits tolerate; null where the
	// method adds none.
	LargestBias router.Number `json:"bias_spread_survived"`

	ids []int32 // as they have to be, while its batch is looked at
}

const failedPrefix = "failed: "

// Disagree begins the fault of a rank that routes the shared tokens of tep mode otherwise than rank 0, as
// TensorRT-LLM's second plan does: to write it again does not mend it.
const Disagree = "in tep mode all ranks hold the same tokens"

// Fault is what is wrong with an entry, without its path; empty for a good one.
func (e Entry) Fault() string {
	_, fault, _ := strings.Cut(e.Status, failedPrefix)
	return fault
}

// fail notes what is wrong.
func (e *Entry) fail(err error) {
	e.Status = failedPrefix + err.Error()
	if about := new(input.Error); errors.As(err, &about) {
		e.Status = failedPrefix + about.Fault()
	}
}

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
func parseEntryName(name string) (b batch, rank int, ok bool) {
	m := entryPattern.FindStringSubmatch(name)
	if m == nil {
		return b, 0, false
	}
	rank, _ = strconv.Atoi(m[2]) // by the pattern, neither fails
	if b = (batch{m[1], AnyTokens}); m[3] != anyTokens {
		b.tokens, _ = strconv.Atoi(m[3])
	}
	return b, rank, true
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

// chunkBytes is about how many bytes of an entry are made, written, read or compared
// at a time: few enough to stay in a processor's nearest caches all the while.
const chunkBytes = 1 << 17

// writer writes entries of one spec. It keeps scratch space, so it is for one
// goroutine; what it holds grows with the largest number of tokens of a rank by
// k numbers per token, and not with the ranks.
type writer struct {
	spec     Spec
	manifest string // its checksum
	router   *router.Router
	ids      []int32
	row      []float32 // one row of logits, all low between uses
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

func newWriter(s Spec, manifest []byte) (*writer, error) {
	r, err := router.NewRouter(s.Gate)
	shape := s.Gate.Shape
	return &writer{spec: s, manifest: checksum(crc32.ChecksumIEEE(manifest)), router: r,
		row: slices.Repeat([]float32{low}, shape.Experts), picked: make([]int32, shape.TopK),
		weights: make([]float32, shape.TopK), routed: map[string]routed{}}, err
}

// checksum is how a CRC-32 is written; always of the same length.
func checksum(crc uint32) string { return fmt.Sprintf("crc32:%08x", crc) }

// write writes an entry: the tensors in file order as they are made,
// then, when its checksum is known, the header in front of them.
func (w *writer) write(ctx context.Context, p planned, e *Entry, to io.WriterAt) error {
	if err := w.assign(p, e); err != nil {
		return err
	}
	meta := map[string]string{
		"manifest": w.manifest, "plan": p.Name, "rank": strconv.Itoa(int(e.Rank)), "tokens_per_rank": tokensText(p.tokens),
		"period": strconv.Itoa(p.Extent.Period), "layers": strconv.Itoa(p.Extent.Layers), "checksum": checksum(0),
		"bias_spread_survived": "any",
	}
	if e.LargestBias.Defined() {
		meta["bias_spread_survived"] = strconv.FormatFloat(float64(e.LargestBias), 'g', -1, 64)
	}
	tensors := w.spec.tensors(p.Extent.Rows)
	head := safetensors.Header(meta, tensors)
	sum := crc32.NewIEEE()
	out := io.MultiWriter(sum, io.NewOffsetWriter(to, int64(len(head))))
	for ids := range slices.Chunk(w.ids, chunkBytes/4) {
		w.buf, _ = binary.Append(w.buf[:0], binary.LittleEndian, ids) // numbers of a fixed size never fail
		if _, err := out.Write(w.buf); err != nil {
			return err
		}
	}
	high, low := w.spec.DType.encoded()
	topK, none := w.spec.Gate.Shape.TopK, bytes.Repeat(low, w.spec.Gate.Shape.Experts) // a row without any
	for ids := range slices.Chunk(w.ids, topK*max(1, chunkBytes/len(none))) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		w.buf = w.buf[:0]
		for row := range slices.Chunk(ids, topK) {
			at := len(w.buf)
			w.buf = append(w.buf, none...)
			for _, id := range row {
				copy(w.buf[at+int(id)*len(high):], high)
			}
		}
		if _, err := out.Write(w.buf); err != nil {
			return err
		}
	}
	meta["checksum"], e.Bytes = checksum(sum.Sum32()), int64(len(head))+w.spec.contentBytes(p.Extent.Rows)
	_, err := to.WriteAt(safetensors.Header(meta, tensors), 0)
	return err
}

// assign fills ids with the experts that an entry's rows get: the planned ones, as far as the
// gate lets them through. Each row is routed by the exact method, and what the router picks
// takes its place, so that an entry never promises what its logits do not do.
func (w *writer) assign(p planned, e *Entry) error {
	gate, slots := w.spec.Gate, p.Extent.Rows*w.spec.Gate.Shape.TopK
	w.ids = slices.Grow(w.ids[:0], slots)[:slots]
	p.Fill(w.ids, int(e.Rank))
	least, key := gate.Shape.TopK, []byte(nil)
	e.Status, e.ProjectedRows = "exact", 0
	for row := range slices.Chunk(w.ids, gate.Shape.TopK) {
		key = key[:0]
		for _, id := range row {
			key = binary.LittleEndian.AppendUint16(key, uint16(id))
		}
		r, known := w.routed[string(key)]
		if !known {
			var err error
			if r, err = w.route(row); err != nil {
				return err
			}
			if len(w.routed) < mostRouted {
				w.routed[string(key)] = r
			}
		}
		if r.to != nil {
			e.Status = "projected"
			e.ProjectedRows++
			copy(row, r.to)
		}
		least = min(least, r.fewest)
	}
	e.LargestBias = router.Number(largestBias(gate, least))
	return nil
}

// route routes the logits that show a row, and where the router picks others, the logits that show
// these: the router must bring them back, with equal weights.
func (w *writer) route(planned []int32) (routed, error) {
	row := slices.Clone(planned)
	for round := range 2 {
		for _, id := range row {
			w.row[id] = high
		}
		w.router.Route(w.row, w.picked, w.weights)
		same := !slices.ContainsFunc(w.picked, func(id int32) bool { return w.row[id] != high })
		for _, id := range row {
			w.row[id] = low
		}
		switch {
		case same && !fair(w.weights):
			return routed{}, fmt.Errorf("want equal weights, have %g to %g", slices.Min(w.weights), slices.Max(w.weights))
		case same && round == 0:
			return routed{fewest: w.fewest(row)}, nil
		case same:
			return routed{row, w.fewest(row)}, nil
		}
		copy(row, w.picked)
	}
	return routed{}, fmt.Errorf("%s routes a planned row to other experts each time", w.spec.Model)
}

// fair reports weights that are all equal.
func fair(weights []float32) bool { return slices.Min(weights) == slices.Max(weights) }

// fewest is the least number of experts that a row has in one of its groups.
func (w *writer) fewest(row []int32) int {
	size, inGroup := int32(w.spec.Gate.Shape.GroupSize()), map[int32]int{}
	for _, id := range row {
		inGroup[id/size]++
	}
	return slices.Min(slices.Collect(maps.Values(inGroup)))
}

// Rows are the logits of a balanced batch of so many tokens, by rank: float32
// [tokens, experts], row-major.
func Rows(spec Spec, tokens int) (rows [][]float32, err error) {
	if spec, err = spec.withDefaults(); err != nil {
		return nil, err
	}
	p, err := spec.plan(batch{plan.Names()[0], tokens}, nil)
	if err != nil {
		return nil, err
	}
	experts, topK := spec.Gate.Shape.Experts, spec.Gate.Shape.TopK
	ids := make([]int32, tokens*topK)
	for rank := range spec.Layout.Ranks() {
		p.Fill(ids, rank)
		of := slices.Repeat([]float32{low}, tokens*experts)
		for i, id := range ids {
			of[i/topK*experts+int(id)] = high
		}
		rows = append(rows, of)
	}
	return rows, nil
}
