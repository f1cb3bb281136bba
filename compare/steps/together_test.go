package steps

import (
	"slices"
	"testing"
)

// In steps of three layers a rank without requests samples nothing. Where it is one rank, the others know its
// steps; where it is each in turn, the marks of all do.
func TestStepsOfRanksTogether(t *testing.T) {
	const steps, layers = 8, 3
	rank := func(layers int, idle func(step int) bool) *Structure {
		var parts []part
		for step := range steps {
			for layer := range layers {
				p := part{}
				if layer == 0 && !idle(step) {
					p.begin = []int{embedding, positions}
				}
				parts = append(parts, p)
			}
		}
		s := Find(launchesOf(parts))
		return &s
	}
	marked := func(marks ...[]int) *Structure { // 27 layers with marks before some: the names, then the layers
		parts := repeat(27, part{})
		for _, m := range marks {
			parts = marksAt(parts, m[:2], m[2:]...)
		}
		s := Find(launchesOf(parts))
		return &s
	}
	always := func(int) bool { return true }
	never := func(int) bool { return false }
	turn := func(rank int) func(int) bool { return func(step int) bool { return step%3 == rank } }
	for _, c := range []struct {
		name  string
		ranks []*Structure
		want  int
	}{
		{"one idle rank", []*Structure{rank(layers, always), rank(layers, never)}, layers},
		{"idle in turn", []*Structure{rank(layers, turn(0)), rank(layers, turn(1))}, layers},
		{"no rank has marks", []*Structure{rank(layers, always), rank(layers, always)}, 0},
		{"steps of all begin elsewhere than one rank's own", []*Structure{
			marked([]int{embedding, positions, 6, 12, 18, 24}, []int{tables, tables + 2, 3, 15, 21},
				[]int{tables + 3, gather, 3, 15, 21}),
			marked([]int{tables, tables + 2, 9}, []int{tables + 3, gather, 9})}, 0},
		{"idle in turn, so that two marks meet in every third step", []*Structure{
			marked([]int{tables, head, 3, 6, 12, 15, 21, 24}, []int{tables + 2, head, 6, 9, 15, 18, 24}),
			marked([]int{tables, head, 6, 9, 15, 18, 24}, []int{tables + 2, head, 3, 9, 12, 18, 21})}, layers},
		{"other layers", []*Structure{rank(layers+1, never), rank(layers, always)}, 0},
	} {
		Together(c.ranks)
		if s := c.ranks[len(c.ranks)-1]; c.want > 0 && s.Layers != c.want || c.want == 0 && c.ranks[1].Layers != 0 {
			t.Errorf("%s: %d layers, unknown for %s", c.name, s.Layers, s.Unknown)
		}
	}
}

// Ranks that skip layers of their own, equally many, are joined by collectives, not by the steps of several lengths that
// each seems to run, nor by the steps of one whose last layers are cut.
func TestRanksThatSkipLayers(t *testing.T) {
	for _, skips := range [][2][]int{{{0, 2, 4, 6}, {1, 3, 5, 7}}, {{3}, {7}}} { // steps by rank
		var ranks []*Structure
		for rank := range 2 {
			block, inside := -1, false
			l := slices.DeleteFunc(launchesOf(steps(8, 3, []int{head, embedding, positions}, part{})), func(l Launch) bool {
				if l.Anchor == ExpertGEMM && !inside {
					block++
				}
				inside = l.Anchor == ExpertGEMM || inside && l.Anchor == None
				return l.Anchor == ExpertGEMM && block%3 == 2 && slices.Contains(skips[rank], block/3)
			})
			s := Find(l)
			ranks = append(ranks, &s)
		}
		if Together(ranks); ranks[0].Layers != 3 || ranks[1].Layers != 3 || len(ranks[1].Blocks) != 24 {
			t.Errorf("%d and %d layers, %d blocks", ranks[0].Layers, ranks[1].Layers, len(ranks[1].Blocks))
		}
	}
}
