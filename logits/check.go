package logits

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router/input"
)

// checker checks that entries are byte for byte what is written for what they say they
// are, and that the gate's exact router, given their logits, picks what they promise. It
// keeps scratch space, so it is for one goroutine.
type checker struct {
	writer  *entryWriter // of the family seen last
	family  string       // its key
	plans   *plans       // shared with others
	stored  []int32
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
	x := r.Spec.extent(p, r.Tokens)
	if x != r.extent() {
		return nil, r.wrong("", fmt.Sprintf("%d rows of period %d", x.rows, x.period),
			fmt.Sprintf("%d of %d", r.Rows, r.Period))
	}
	feasibility, err := c.writer.assign(p, r.Rank, r.Rows)
	if err == nil && feasibility != r.Feasibility {
		err = r.wrong("", fmt.Sprintf("the feasibility %+v", feasibility), fmt.Sprintf("%+v", r.Feasibility))
	}
	if err == nil {
		_, err = c.writer.write(ctx, p, r.Rank, x, newCompareWriter(f))
	}
	if other := new(difference); errors.As(err, &other) {
		err = r.wrong(f.Place(other.at), other.want, other.have)
	}
	if err == nil {
		err = c.route(ctx, r)
	}
	return c.writer.ids, err
}

// adopt readies the checker for the record's family.
func (c *checker) adopt(r Record) error {
	if family := r.family(); c.writer == nil || family != c.family {
		w, err := newEntryWriter(r.Spec)
		if err != nil {
			return err
		}
		c.writer, c.family = w, family
		c.weights = make([]float32, r.Spec.Gate.Shape.TopK)
		c.routed = map[string]bool{}
	}
	return nil
}

// readIDs reads the chosen experts and checks that they are distinct and exist.
func (c *checker) readIDs(f *safetensors.File, r Record) error {
	b, _, err := f.Bytes(tensorIDs)
	if err != nil {
		return err
	}
	c.stored = decodeIDs(c.stored[:0], b)
	shape := r.Spec.Gate.Shape
	for i, e := range c.stored {
		row := c.stored[i-i%shape.TopK : i]
		if e < 0 || int(e) >= shape.Experts || slices.Contains(row, e) {
			return r.wrongToken(i/shape.TopK, fmt.Sprintf("%d distinct experts from 0 to %d", shape.TopK,
				shape.Experts-1), c.stored[i-i%shape.TopK:][:shape.TopK])
		}
	}
	return nil
}

// wrongToken is an error about one token.
func (r Record) wrongToken(token int, want string, have any) error {
	return r.wrong(fmt.Sprintf("token %d", token), want, fmt.Sprint(have))
}

// route routes every distinct row of the entry: equal ids are equal rows, and those of a
// periodic plan come again and again.
func (c *checker) route(ctx context.Context, r Record) error {
	token := 0
	for row := range slices.Chunk(c.writer.ids, r.Spec.Gate.Shape.TopK) {
		c.key = c.key[:0]
		for _, e := range row {
			c.key = binary.LittleEndian.AppendUint32(c.key, uint32(e))
		}
		if !c.routed[string(c.key)] {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := c.routeRow(r, token, row); err != nil {
				return err
			}
			if len(c.routed) < mostRouted {
				c.routed[string(c.key)] = true
			}
		}
		token++
	}
	return nil
}

// routeRow routes the logits of one row and compares the choice and the weights with what
// the entry promises.
func (c *checker) routeRow(r Record, token int, promised []int32) error {
	w := c.writer
	same, err := w.picks(promised, c.weights)
	switch {
	case err != nil:
		return r.wrongToken(token, "logits that can be routed", err)
	case !same:
		return r.wrongToken(token, fmt.Sprintf("the router to pick experts %v", promised), w.picked)
	}
	for i, e := range w.picked {
		if c.weights[i] != c.weights[0] {
			return r.wrongToken(token, "equal weights", fmt.Sprintf("%v for expert %d and %v for expert %d",
				c.weights[0], w.picked[0], c.weights[i], e))
		}
	}
	return nil
}

// ErrDamaged is wrapped by the errors about files that stand in the place of an
// entry and are not that entry.
var ErrDamaged = errors.New("damaged")

// damage words why the file of an entry could not be taken: it is damaged, unless
// it was the system that would not read it.
func damage(path string, err error) error {
	if system := new(fs.PathError); err == nil || errors.As(err, &system) {
		return err
	}
	return fmt.Errorf("entry %q is %w: %s", path, ErrDamaged, fault(err))
}

// difference is the first byte of a file that is not the one to be written. It is an
// ErrDamaged.
type difference struct {
	at         int64
	want, have string
}

func (d *difference) Error() string {
	return fmt.Sprintf("%v: byte %d: want %s, have %s", ErrDamaged, d.at, d.want, d.have)
}

func (d *difference) Unwrap() error { return ErrDamaged }

// compareWriter compares what is written with a file instead of writing it: an
// entryWriter checks an entry with it.
type compareWriter struct {
	file io.ReaderAt
	read []byte
}

func newCompareWriter(file io.ReaderAt) *compareWriter { return &compareWriter{file: file} }

// WriteAt reads as many bytes of the file and compares them.
func (c *compareWriter) WriteAt(entry []byte, at int64) (int, error) {
	c.read = slices.Grow(c.read[:0], len(entry))[:len(entry)]
	n, err := c.file.ReadAt(c.read, at)
	if !bytes.Equal(c.read[:n], entry[:n]) {
		i := 0
		for c.read[i] == entry[i] {
			i++
		}
		return i, &difference{at + int64(i), fmt.Sprintf("0x%02x", entry[i]), fmt.Sprintf("0x%02x", c.read[i])}
	}
	switch {
	case n == len(entry):
		return n, nil
	case errors.Is(err, io.EOF):
		return n, &difference{at + int64(n), fmt.Sprintf("0x%02x", entry[n]), "the end of the file"}
	}
	return n, err
}
