package logits

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"reflect"
	"slices"

	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/plan"
)

// checker checks that entries are what they say and that the gate's exact router,
// given their logits, picks what they promise. It keeps scratch space, so it is for
// one goroutine.
type checker struct {
	writer  *entryWriter // of the family seen last
	family  string       // its key
	plans   *plans       // shared with others
	read    []byte
	stored  []int32
	decoded []float32
	weights []float32
	routed  map[string]bool // the ids of rows of this family that were routed as promised
	key     []byte
}

// mostRouted bounds what a checker remembers: the tables of our plan have a few
// hundred rows a source.
const mostRouted = 1 << 14

func newChecker(p *plans) *checker { return &checker{plans: p} }

// check checks one opened entry with its record. The ids are valid until the
// next call.
func (c *checker) check(ctx context.Context, f *safetensors.File, r Record) (ids []int32, err error) {
	if err := c.adopt(r); err != nil {
		return nil, err
	}
	p, err := c.plans.of(c.family, r.Spec, r.Tokens)
	if err != nil {
		return nil, err
	}
	if p.Name() != r.PlanName {
		return nil, &input.Error{File: r.path, Expected: "an entry of plan " + p.Name(), Found: "one of " + r.PlanName,
			Try: "generate it anew with this version"}
	}
	if x := r.Spec.extent(p, r.Tokens); x != r.extent() {
		return nil, r.wrong("", fmt.Sprintf("%d rows of period %d", x.rows, x.period),
			fmt.Sprintf("%d of %d", r.Rows, r.Period))
	}
	crc, err := c.readIDs(f, r)
	if err != nil {
		return nil, err
	}
	rest := f.Tensors()[1:]
	if r.Spec.Gate.Bias != nil {
		crc = crc32.Update(crc, castagnoli, biasBytes(r.Spec.Gate.Bias))
		rest = rest[1:]
	}
	if err := c.checkIDs(p, r); err != nil {
		return nil, err
	}
	for _, t := range rest {
		if crc, err = c.checkRows(ctx, f, r, t, crc); err != nil {
			return nil, err
		}
	}
	return c.stored, r.checkCRC(crc)
}

// adopt readies the checker for the record's family.
func (c *checker) adopt(r Record) error {
	if family := r.family(); c.writer == nil || family != c.family {
		w, err := newEntryWriter(r.Spec)
		if err != nil {
			return err
		}
		c.writer, c.family = w, family
		c.decoded = make([]float32, r.Spec.Gate.Shape.Experts)
		c.weights = make([]float32, r.Spec.Gate.Shape.TopK)
		c.routed = map[string]bool{}
	}
	return nil
}

// readIDs reads the chosen experts, the first tensor of an entry, and checks that
// they are distinct and exist. It returns the checksum so far.
func (c *checker) readIDs(f *safetensors.File, r Record) (crc uint32, err error) {
	t, shape := f.Tensors()[0], r.Spec.Gate.Shape
	if crc, err = c.readAt(f, t, 0, int(t.Bytes()), 0); err != nil {
		return 0, err
	}
	c.stored = decodeIDs(c.stored[:0], c.read)
	for i, e := range c.stored {
		row := c.stored[i-i%shape.TopK : i]
		if e < 0 || int(e) >= shape.Experts || slices.Contains(row, e) {
			return 0, r.wrongToken(i/shape.TopK, fmt.Sprintf("%d distinct experts from 0 to %d", shape.TopK,
				shape.Experts-1), c.stored[i-i%shape.TopK:][:shape.TopK])
		}
	}
	return crc, nil
}

// readAt reads n bytes of a tensor and adds them to the checksum.
func (c *checker) readAt(f *safetensors.File, t safetensors.Tensor, at int64, n int, crc uint32) (uint32, error) {
	c.read = slices.Grow(c.read[:0], n)[:n]
	err := f.ReadAt(t, c.read, at)
	return crc32.Update(crc, castagnoli, c.read), err
}

// wrongToken is an error about one token.
func (r Record) wrongToken(token int, want string, have any) error {
	return r.wrong(fmt.Sprintf("token %d", token), want, fmt.Sprint(have))
}

// checkIDs plans anew and compares the stored experts with the plan, as far as
// the gate lets it through.
func (c *checker) checkIDs(p plan.Plan, r Record) error {
	k := r.Spec.Gate.Shape.TopK
	feasibility, err := c.writer.assign(p, r.Rank, r.Rows)
	if err != nil {
		return err
	}
	for i, e := range c.writer.ids {
		if c.stored[i] != e {
			at := i / k * k
			return r.wrongToken(i/k, fmt.Sprintf("experts %v by plan %s", c.writer.ids[at:at+k], r.PlanName),
				c.stored[at:at+k])
		}
	}
	if !reflect.DeepEqual(feasibility, r.Feasibility) {
		return r.wrong("", fmt.Sprintf("the feasibility %+v", feasibility), fmt.Sprintf("%+v", r.Feasibility))
	}
	return nil
}

// checkRows compares the logits, byte by byte, with those that the ids call for, and
// then routes every distinct row: after that comparison, equal ids mean equal rows, and
// the rows of a periodic plan come again and again.
func (c *checker) checkRows(ctx context.Context, f *safetensors.File, r Record, t safetensors.Tensor,
	crc uint32) (uint32, error) {
	k, width := r.Spec.Gate.Shape.TopK, int64(len(c.writer.rows.low))
	token := 0
	for ids := range slices.Chunk(c.stored, c.writer.rows.rows()*k) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		want := c.writer.rows.encode(ids)
		var err error
		if crc, err = c.readAt(f, t, int64(token)*width, len(want), crc); err != nil {
			return 0, err
		}
		if !bytes.Equal(c.read, want) {
			return 0, c.difference(r, token, want)
		}
		rows := c.read
		for row := range slices.Chunk(ids, k) {
			c.key = c.key[:0]
			for _, e := range row {
				c.key = binary.LittleEndian.AppendUint32(c.key, uint32(e))
			}
			if !c.routed[string(c.key)] {
				if err := c.checkRow(r, token, row, rows[:width]); err != nil {
					return 0, err
				}
				if len(c.routed) < mostRouted {
					c.routed[string(c.key)] = true
				}
			}
			rows = rows[width:]
			token++
		}
	}
	return crc, nil
}

// difference names the first element of the rows read that is not the wanted one.
func (c *checker) difference(r Record, token int, want []byte) error {
	size, width := c.writer.rows.size, len(c.writer.rows.low)
	at := 0
	for bytes.Equal(c.read[at:at+size], want[at:at+size]) {
		at += size
	}
	value := func(b []byte) float32 {
		var x [1]float32
		if err := safetensors.Decode(x[:], b[at:at+size], r.Spec.DType.stored()); err != nil {
			panic(err) // size and type are of our own making
		}
		return x[0]
	}
	return r.wrongToken(token+at/width, fmt.Sprintf("logit %v for expert %d", value(want), at%width/size),
		value(c.read))
}

// checkRow routes one row of logits as stored and compares the choice and the
// weights with what the entry promises.
func (c *checker) checkRow(r Record, token int, promised []int32, encoded []byte) error {
	w := c.writer
	if err := safetensors.Decode(c.decoded, encoded, r.Spec.DType.stored()); err != nil {
		return err
	}
	if err := w.router.Route(c.decoded, w.picked, c.weights); err != nil {
		return r.wrongToken(token, "logits that can be routed", err)
	}
	for i, e := range w.picked {
		if c.decoded[e] != w.logits.high {
			return r.wrongToken(token, fmt.Sprintf("the router to pick experts %v", promised), w.picked)
		}
		if c.weights[i] != c.weights[0] {
			return r.wrongToken(token, "equal weights", fmt.Sprintf("%v for expert %d and %v for expert %d",
				c.weights[0], w.picked[0], c.weights[i], e))
		}
	}
	return nil
}
