package logits

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router/plan"
)

// checker proves entries: that they are what they say and that the gate's exact
// router, given their logits, picks what they promise. It keeps scratch space,
// so it is for one goroutine.
type checker struct {
	*maker         // of the family seen last
	family  string // its key
	plans   *plans // shared with others
	rows    []byte
	stored  []int32
	decoded []float32
	weights []float32
}

func newChecker(p *plans) *checker { return &checker{plans: p} }

// check proves one opened entry with its record. The ids are valid until the
// next call.
func (c *checker) check(f *safetensors.File, r Record) (ids []int32, err error) {
	if err := c.adopt(r); err != nil {
		return nil, err
	}
	plan, err := c.plans.of(c.family, r.Spec, r.Batch)
	if err != nil {
		return nil, err
	}
	if plan.Name() != r.PlanName {
		return nil, fmt.Errorf("made by plan %q, and this program makes %q: generate it anew", r.PlanName, plan.Name())
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
	if err := c.checkIDs(plan, r); err != nil {
		return nil, err
	}
	for _, t := range rest {
		if crc, err = c.checkRows(f, t, crc); err != nil {
			return nil, err
		}
	}
	return c.stored, r.checksums(crc)
}

// adopt readies the checker for the record's family.
func (c *checker) adopt(r Record) error {
	if family := r.family(); c.maker == nil || family != c.family {
		m, err := newMaker(r.Spec)
		if err != nil {
			return err
		}
		c.maker, c.family = m, family
		c.decoded = make([]float32, r.Spec.Gate.Shape.Experts)
		c.weights = make([]float32, r.Spec.Gate.Shape.TopK)
	}
	return nil
}

// readIDs reads the chosen experts, the first tensor of an entry, and holds them
// to the experts there are. It returns the checksum so far.
func (c *checker) readIDs(f *safetensors.File, r Record) (crc uint32, err error) {
	t, shape := f.Tensors()[0], r.Spec.Gate.Shape
	c.stored = c.stored[:0]
	for at := int64(0); at < t.Bytes(); at += int64(len(c.rows)) {
		n := int(min(blockBytes, t.Bytes()-at))
		c.rows = slices.Grow(c.rows[:0], n)[:n]
		if err := f.ReadAt(t, c.rows, at); err != nil {
			return 0, err
		}
		crc = crc32.Update(crc, castagnoli, c.rows)
		c.stored = decodeIDs(c.stored, c.rows)
	}
	for i, e := range c.stored {
		row := c.stored[i-i%shape.TopK : i]
		if e < 0 || int(e) >= shape.Experts || slices.Contains(row, e) {
			return 0, fmt.Errorf("token %d: want %d distinct experts from 0 to %d, found %v", i/shape.TopK, shape.TopK, shape.Experts-1, c.stored[i-i%shape.TopK:][:shape.TopK])
		}
	}
	return crc, nil
}

// checkIDs plans anew and holds the stored experts against the plan, as far as
// the gate lets it through.
func (c *checker) checkIDs(plan plan.Plan, r Record) error {
	k := c.spec.Gate.Shape.TopK
	c.ids = slices.Grow(c.ids[:0], len(c.stored))[:len(c.stored)]
	plan.Fill(c.ids, r.Rank)
	finding, err := c.settle(c.ids)
	if err != nil {
		return err
	}
	for i, e := range c.ids {
		if c.stored[i] != e {
			at := i / k * k
			return fmt.Errorf("token %d: want experts %v by plan %s, found %v", i/k, c.ids[at:at+k], r.PlanName, c.stored[at:at+k])
		}
	}
	if finding.Status != r.Finding.Status || finding.Moved != r.Finding.Moved ||
		finding.Margin != r.Finding.Margin || !slices.Equal(finding.Impossible, r.Finding.Impossible) {
		return fmt.Errorf("want the finding %+v, found %+v", finding, r.Finding)
	}
	return nil
}

// checkRows holds the logits, byte by byte, against those the ids call for, and
// then routes every row.
func (c *checker) checkRows(f *safetensors.File, t safetensors.Tensor, crc uint32) (uint32, error) {
	k, width := c.spec.Gate.Shape.TopK, int64(c.block.rowBytes())
	token := 0
	for ids := range slices.Chunk(c.stored, c.block.rows()*k) {
		want := c.block.show(ids)
		c.rows = slices.Grow(c.rows[:0], len(want))[:len(want)]
		if err := f.ReadAt(t, c.rows, int64(token)*width); err != nil {
			return 0, err
		}
		crc = crc32.Update(crc, castagnoli, c.rows)
		if !bytes.Equal(c.rows, want) {
			return 0, c.difference(token, want)
		}
		rows := c.rows
		for row := range slices.Chunk(ids, k) {
			if err := c.checkRow(token, row, rows[:width]); err != nil {
				return 0, err
			}
			rows = rows[width:]
			token++
		}
	}
	return crc, nil
}

// difference names the first element of the rows read that is not the wanted one.
func (c *checker) difference(token int, want []byte) error {
	size, width := c.block.size, c.block.rowBytes()
	at := 0
	for bytes.Equal(c.rows[at:at+size], want[at:at+size]) {
		at += size
	}
	value := func(b []byte) float32 {
		var x [1]float32
		if err := safetensors.Decode(x[:], b[at:at+size], c.spec.DType.stored()); err != nil {
			panic(err) // size and type are of our own making
		}
		return x[0]
	}
	return fmt.Errorf("token %d: want logit %v for expert %d, found %v", token+at/width, value(want), at%width/size, value(c.rows))
}

// checkRow routes one row of logits as stored and holds the choice and the
// weights against what the entry promises.
func (c *checker) checkRow(token int, promised []int32, encoded []byte) error {
	if err := safetensors.Decode(c.decoded, encoded, c.spec.DType.stored()); err != nil {
		return err
	}
	if _, err := c.router.Route(c.decoded, c.picked, c.weights); err != nil {
		return fmt.Errorf("token %d: %w", token, err)
	}
	for i, e := range c.picked {
		if c.decoded[e] != c.levels.high {
			return fmt.Errorf("token %d: want the router to pick experts %v, it picks %v", token, promised, c.picked)
		}
		if c.weights[i] != c.weights[0] {
			return fmt.Errorf("token %d: want equal weights, expert %d has %v and expert %d has %v", token, c.picked[0], c.weights[0], e, c.weights[i])
		}
	}
	return nil
}
