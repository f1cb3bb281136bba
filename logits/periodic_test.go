package logits

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/plan"
)

// periodicSpecs are shapes of published models: rank and table are checked by counting.
func periodicSpecs(t testing.TB) map[string]Spec {
	gptOSS := specOf(t, router.Gate{Method: router.Renormalize, Scale: 1, Shape: router.Shape{Experts: 128, TopK: 4}},
		8)
	kimi := specOf(t, router.Gate{Method: router.DeepSeekV3, Scale: 1, Shape: router.Shape{Experts: 384, TopK: 8,
		Groups: 1, TopKGroups: 1}}, 8)
	qwen := specOf(t, router.Gate{Method: router.Renormalize, Scale: 1, Shape: router.Shape{Experts: 128, TopK: 8}}, 2)
	qwen.Mode = router.TEP
	return map[string]Spec{"gpt-oss dep8": gptOSS, "deepseek-v3 dep8": specOf(t, deepSeek(), 8), "kimi-k2 dep8": kimi,
		"qwen3 tep2": qwen}
}

// A periodic entry holds the rows of the entries of any batch size, from multiples of
// its period on; equal numbers of tokens on all ranks then are at the floors by hand:
// no rank above ⌈slots/ranks⌉, no expert above ⌈slots/experts⌉.
func TestPeriodicEntryServesAnyTokens(t *testing.T) {
	for name, spec := range periodicSpecs(t) {
		c := openCache(t, t.TempDir(), spec)
		var all []*Entry
		sources := spec.Layout.Ranks()
		if spec.Mode == router.TEP {
			sources = 1
		}
		for rank := range sources {
			e, err := c.Get(rank, AnyTokens)
			if err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(filepath.Join(c.dir, filepath.Base(e.path))); err != nil || info.Size() > 512<<10 ||
				e.Rows < 128 || e.Rows%e.Period != 0 {
				t.Errorf("%s: %d rows of period %d, %v, %v", name, e.Rows, e.Period, info.Size(), err)
			}
			all = append(all, e)
		}
		k, experts, perRank := spec.Gate.Shape.TopK, spec.Gate.Shape.Experts,
			spec.Gate.Shape.Experts/spec.Layout.Ranks()
		rows := all[0].Rows
		for _, offset := range []int{0, 3 * all[0].Period} {
			byExpert, byRank := make([]int, experts), make([]int, spec.Layout.Ranks())
			for token := range 2*rows + 3 {
				for _, e := range all {
					at := (token + offset) % rows * k
					for _, id := range e.IDs[at : at+k] {
						byExpert[id]++
						byRank[int(id)/perRank]++
					}
				}
				slots := (token + 1) * sources * k
				if most := slices.Max(byRank); most != (slots+len(byRank)-1)/len(byRank) {
					t.Fatalf("%s from row %d: %d tokens: %d slots of %d on the busiest rank", name, offset, token+1,
						most, slots)
				}
				if most := slices.Max(byExpert); most != (slots+experts-1)/experts {
					t.Fatalf("%s from row %d: %d tokens: %d slots of %d for the busiest expert", name, offset, token+1,
						most, slots)
				}
			}
		}
		for _, tokens := range []int{1, 7, rows + 5} {
			e, err := c.Get(0, tokens)
			if err != nil {
				t.Fatal(err)
			}
			for i, id := range e.IDs {
				if want := all[0].IDs[i%(rows*k)]; id != want {
					t.Fatalf("%s: %d tokens: slot %d has expert %d, the periodic entry %d", name, tokens, i, id, want)
				}
			}
		}
	}
}

func TestPeriodicEntryIsVerified(t *testing.T) {
	for name, spec := range periodicSpecs(t) {
		c := openCache(t, t.TempDir(), spec)
		fill(t, c, AnyTokens)
		v, err := Verify(context.Background(), c.dir, nil)
		if err != nil || len(v.Balance) != 1 || v.Balance[0].Certificate == nil {
			t.Fatalf("%s: %+v, %v", name, v, err)
		}
		b := v.Balance[0]
		if !b.AtFloor || !b.Certificate.Optimal() || b.TokensPerRank.Defined() || v.Entries[0].TokensPerRank != nil ||
			*v.Entries[0].Rows != b.Certificate.Rows {
			t.Errorf("%s: %+v", name, b)
		}
	}
}

// In tep mode DeepSeek-V3 on 8 ranks has an odd number of tokens one slot above the
// floor (facts of the shape, counted elsewhere), which the certificate says.
func TestCertificateCountsWhatIsAboveTheFloor(t *testing.T) {
	spec := specOf(t, deepSeek(), 8)
	spec.Mode = router.TEP
	c := openCache(t, t.TempDir(), spec)
	fill(t, c, AnyTokens)
	v, err := Verify(context.Background(), c.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := v.Balance[0]
	if b.AtFloor || b.Certificate.Rank != (plan.Misses{Tokens: b.Certificate.Rows/2 - 1, Worst: 1}) ||
		!b.Certificate.Level {
		t.Errorf("%+v", b.Certificate)
	}
}

// swapped is a plan with one row twice and another one not at all.
type swapped struct{ plan.Periodic }

func (s swapped) Fill(dst []int32, rank int) {
	s.Periodic.Fill(dst, rank)
	k := len(dst) / s.Rows()
	copy(dst[k:2*k], dst[:k])
}

func TestPlantedRowIsFound(t *testing.T) {
	spec, w := writerOf(t, periodicSpecs(t)["gpt-oss dep8"])
	made, err := spec.plan(0)
	if err != nil {
		t.Fatal(err)
	}
	c := openCache(t, t.TempDir(), spec)
	fill(t, c, AnyTokens)
	x := spec.extent(made, AnyTokens)
	path := filepath.Join(c.dir, fileName(spec.identify(made.Name(), 2, x)))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.write(context.Background(), swapped{made.(plan.Periodic)}, 2, x, f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	v, err := Verify(context.Background(), c.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if fault := v.Entries[2].Fault(); !strings.Contains(fault, "expert_ids of row 1:") ||
		v.Balance[0].Certificate != nil {
		t.Errorf("fault %q, %+v", fault, v.Balance[0])
	}
	// Counting alone finds it too.
	ids := make([][]int32, 8)
	for rank := range ids {
		ids[rank] = make([]int32, x.rows*spec.Gate.Shape.TopK)
		made.Fill(ids[rank], rank)
	}
	record := Record{Spec: spec, Tokens: AnyTokens, Rows: x.rows, Period: x.period}
	if !certify(record, ids).Optimal() {
		t.Error("the plan is not at its floors")
	}
	swapped{made.(plan.Periodic)}.Fill(ids[2], 2)
	if got := certify(record, ids); got.Optimal() || got.Level {
		t.Errorf("%+v", got)
	}
}
