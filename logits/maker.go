package logits

import (
	"encoding/binary"
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

// maker writes entries of one spec. It keeps scratch space, so it is for one
// goroutine; what it holds grows with the largest number of tokens of a rank by
// k numbers per token, and not with the ranks.
type maker struct {
	spec    Spec
	router  *router.Router
	block   *block
	levels  levels
	decided int // experts per group, as the function says
	ids     []int32
	row     []float32 // one row of decoded logits, all background between uses
	picked  []int32
	chunk   []byte
	census  census
}

func newMaker(s Spec) (*maker, error) {
	r, err := router.NewRouter(s.Gate)
	if err != nil {
		return nil, err
	}
	shape := s.Gate.Shape
	m := &maker{
		spec: s, router: r, levels: levelsOf(s.Gate),
		row: make([]float32, shape.Experts), picked: make([]int32, shape.TopK), census: newCensus(shape),
	}
	m.decided = decided(s.Gate, m.levels)
	m.block = newBlock(shape.Experts, shape.TopK, s.DType, m.levels)
	for e := range m.row {
		m.row[e] = m.levels.low
	}
	return m, nil
}

// made says what one written entry is.
type made struct {
	bytes   int64
	finding Finding
}

// make writes the entry of a rank: the tensors in file order as they are made,
// then, when its checksum is known, the header in front of them.
func (m *maker) make(plan plan.Plan, rank int, b Batch, w io.WriterAt) (made, error) {
	shape, tokens := m.spec.Gate.Shape, b.On(rank)
	m.ids = slices.Grow(m.ids[:0], tokens*shape.TopK)[:tokens*shape.TopK]
	plan.Fill(m.ids, rank)
	finding, err := m.settle(m.ids)
	if err != nil {
		return made{}, err
	}
	meta := m.spec.identify(plan.Name(), rank, b)
	finding.note(meta)
	meta[keyChecksum] = checksumText(0)
	tensors := m.spec.tensors(tokens)
	head, err := safetensors.Header(meta, tensors)
	if err != nil {
		return made{}, err
	}
	out := summer{w: w, at: int64(len(head))}
	m.writeIDs(&out)
	out.write(biasBytes(m.spec.Gate.Bias))
	if !m.spec.IDsOnly {
		for ids := range slices.Chunk(m.ids, m.block.rows()*shape.TopK) {
			out.write(m.block.show(ids))
		}
	}
	if out.err != nil {
		return made{}, out.err
	}
	meta[keyChecksum] = checksumText(out.crc)
	if head, err = safetensors.Header(meta, tensors); err != nil {
		return made{}, err
	}
	_, err = w.WriteAt(head, 0)
	return made{bytes: out.at, finding: finding}, err
}

// writeIDs writes the chosen experts as little-endian int32, in chunks.
func (m *maker) writeIDs(out *summer) {
	for ids := range slices.Chunk(m.ids, blockBytes/4) {
		chunk := m.chunk[:0]
		for _, e := range ids {
			chunk = binary.LittleEndian.AppendUint32(chunk, uint32(e))
		}
		out.write(chunk)
		m.chunk = chunk
	}
}

// summer writes at a moving offset and keeps the checksum and the first error.
type summer struct {
	w   io.WriterAt
	at  int64
	crc uint32
	err error
}

func (s *summer) write(b []byte) {
	if s.err != nil || len(b) == 0 {
		return
	}
	s.crc = crc32.Update(s.crc, castagnoli, b)
	var n int
	n, s.err = s.w.WriteAt(b, s.at)
	s.at += int64(n)
}

// settle routes the planned rows that the two levels alone do not decide, and
// puts what the router picks in their place, so that an entry never promises
// what its logits do not do. A row of k distinct experts in no more groups than the
// gate allows is picked as it stands when no bias is large enough to matter.
func (m *maker) settle(ids []int32) (Finding, error) {
	gate := m.spec.Gate
	f := Finding{Status: Exact}
	least := gate.Shape.TopK
	for row := range slices.Chunk(ids, gate.Shape.TopK) {
		groups, fewest := m.census.of(row)
		if fewest < m.decided || groups > gate.Shape.GroupLimit() {
			moved, err := m.settleRow(row, &f)
			if err != nil {
				return f, err
			}
			if moved {
				f.Moved++
				_, fewest = m.census.of(row)
			}
		}
		least = min(least, fewest)
	}
	switch {
	case len(f.Impossible) > 0:
		f.Status = Infeasible
		slices.Sort(f.Impossible)
	case f.Moved > 0:
		f.Status = Projected
	}
	f.Margin = margin(gate, m.levels, least)
	return f, nil
}

// settleRounds bounds how often a row is routed anew. Showing the router's own
// pick at High keeps it in front of what it had beaten already, so one round
// settles a row; only group scores can make it take more.
const settleRounds = 8

func (m *maker) settleRow(row []int32, f *Finding) (moved bool, err error) {
	for range settleRounds {
		same, err := m.picks(row)
		if err != nil || same {
			return moved, err
		}
		if !moved {
			for _, e := range unreachable(row, m.spec.Gate) {
				if !slices.Contains(f.Impossible, e) {
					f.Impossible = append(f.Impossible, e)
				}
			}
		}
		moved = true
		copy(row, m.picked)
	}
	return moved, fmt.Errorf("the correction bias of %s lets no set of experts stand: routing %v gives other ones each time", m.spec.Model, row)
}

// picks routes the logits that show a row and reports whether they bring back
// the same set. What the router picked is left in m.picked.
func (m *maker) picks(row []int32) (same bool, err error) {
	for _, e := range row {
		m.row[e] = m.levels.high
	}
	_, err = m.router.Route(m.row, m.picked, nil)
	same = true
	for _, e := range m.picked {
		same = same && m.row[e] == m.levels.high
	}
	for _, e := range row {
		m.row[e] = m.levels.low
	}
	return same, err
}
