package plan

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

// The golden vectors are CRC-32 (IEEE) over the little-endian 32-bit ids of one
// rank's tokens, row-major, with the first row. They were computed with an
// independent port of the reference's arithmetic.

type golden struct {
	tokens, experts, topK, groups, topKGroups, ranks, rank int
	crc                                                    uint32
	row                                                    []int32
}

func TestReferenceFlatGolden(t *testing.T) {
	for _, g := range []golden{
		{4, 8, 2, 0, 0, 4, 0, 0xfb85d9a1, []int32{0, 2}},
		{4, 8, 2, 0, 0, 4, 3, 0x12daaee7, []int32{6, 1}},
		{5, 8, 8, 0, 0, 4, 1, 0x55fed8e4, []int32{2, 4, 6, 1}},
	} {
		g.check(t, "trtllm-gen2", router.Renormalize)
		if g.rank == 0 {
			g.check(t, "trtllm-gen1", router.Renormalize)
		}
	}
}

func TestReferenceGroupedGolden(t *testing.T) {
	for _, g := range []golden{
		{1, 8, 4, 4, 2, 2, 1, 0x6f91ddc2, []int32{7, 0, 6, 1}}, // the example in the source's own comment
		{32, 256, 8, 8, 4, 1, 0, 0xec936fae, []int32{0, 33, 130, 163, 132, 165, 6, 39}},
		{32, 256, 8, 8, 4, 8, 5, 0x6d07424e, []int32{165, 198, 231, 8, 169, 202, 235, 12}},
		{32, 384, 6, 8, 4, 8, 3, 0xd765f34c, []int32{147, 196, 245, 294, 151, 200}},
		{16, 512, 22, 1, 1, 8, 2, 0x57116335, []int32{130, 195, 260, 325, 390, 455, 8, 73}},
	} {
		g.check(t, "trtllm-gen2", router.DeepSeekV3)
	}
	// Ours, by a diagonal, where none fits, and drawn, stay what caches of earlier releases hold.
	golden{32, 256, 8, 8, 4, 8, 5, 0x56e671d1, []int32{166}}.check(t, "diagonal", router.DeepSeekV3)
	golden{32, 32, 8, 4, 2, 14, 3, 0x12b10ab0, []int32{10}}.check(t, "diagonal", router.DeepSeekV3)
	golden{32, 32, 4, 8, 4, 8, 3, 0xea5337eb, []int32{25}}.check(t, "target-1.5", router.DeepSeekV3)
	golden{32, 32, 8, 4, 2, 4, 3, 0xaa4e11c7, []int32{13}}.check(t, "vllm-normal", router.DeepSeekV3)
}

func (g golden) check(t *testing.T, name string, method router.Method) {
	t.Helper()
	p := problem(g.experts, g.topK, g.groups, g.topKGroups, g.ranks, router.DEP, g.tokens)
	ids := fill(name, p, Options{Method: method}, g.rank)
	if !slices.Equal(ids[:len(g.row)], g.row) {
		t.Errorf("%s %+v: first row %v, want %v", name, g, ids[:len(g.row)], g.row)
	}
	var raw []byte
	for _, e := range ids {
		raw = binary.LittleEndian.AppendUint32(raw, uint32(e))
	}
	if got := crc32.ChecksumIEEE(raw); got != g.crc {
		t.Errorf("%s %+v: crc %08x, want %08x", name, g, got, g.crc)
	}
}

// fill is one rank's ids of a plan.
func fill(name string, p Problem, o Options, rank int) []int32 {
	plan := require.Value(New(name, p, o))
	ids := make([]int32, p.Tokens[rank]*p.Shape.TopK)
	plan.Fill(ids, rank)
	return ids
}
