package logits

import (
	"context"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router"
)

func TestBatchesInWords(t *testing.T) {
	for _, c := range []struct {
		batch   Batch
		text    string
		differs bool
	}{
		{Batch{}, "0", false},
		{Equal(8), "8", false},
		{Unequal(8, 8, 8), "8", false},
		{Unequal(8), "8", false},
		{Unequal(9, 2, 0), "9,2,0", true},
		{Unequal(0, 1), "0,1", true},
	} {
		if c.batch.String() != c.text || c.batch.PerRank().Defined() == c.differs || (c.batch.OfRanks() != nil) != c.differs {
			t.Errorf("%q, per rank %v, of ranks %v; want %q, differing %v", c.batch, c.batch.PerRank(), c.batch.OfRanks(), c.text, c.differs)
		}
		if text := (BatchBalance{TokensPerRank: c.batch.PerRank(), TokensOfRanks: c.batch.OfRanks()}).Tokens(); text != c.text {
			t.Errorf("%q is %q in a balance", c.text, text)
		}
	}
	each := []int{3, 1}
	b := Unequal(each...)
	if each[0] = 5; b.On(0) != 3 {
		t.Error("a batch follows the slice that it was made from")
	}
}

func TestBatchesThatRanksCannotHold(t *testing.T) {
	s := specOf(t, small(router.Renormalize), 4)
	dir := filepath.Join(t.TempDir(), "cache")
	c := openCache(t, dir, s)
	s.Mode = router.TEP
	same := openCache(t, dir, s)
	for _, try := range []struct {
		cache *Cache
		batch Batch
		want  string
	}{
		{c, Unequal(1, 2, 3), "each of 4 ranks, have 3: [1 2 3]"},
		{c, Unequal(2, 2, 2, 2, 2), "each of 4 ranks, have 5"},
		{c, Unequal(), "each of 4 ranks, have 0"},
		{c, Unequal(1, 2, -3, 4), "have -3 on rank 2"},
		{c, Unequal(1, 2, 3, MaxTokens+1), "0 to 16777216 tokens per rank, have 16777217 on rank 3"},
		{c, Unequal(1, MaxTokens-1, 1, 0), "at most 16777216 tokens on ranks that hold unequally many, have 16777217 together"},
		{c, Equal(-1), "have -1 on rank 0"},
		{same, Unequal(1, 2, 2, 2), "in tep mode all ranks hold the same tokens"},
	} {
		_, getErr := try.cache.Get(0, try.batch)
		_, fillErr := try.cache.Fill(context.Background(), []int{0}, []Batch{Equal(1), try.batch}, nil)
		for _, err := range []error{getErr, fillErr} {
			if !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), try.want) {
				t.Errorf("%v: got %v, want %q", try.batch.each, err, try.want)
			}
		}
	}
	// The last numbers that are taken, on a rank that has none of them.
	for _, b := range []Batch{Unequal(0, MaxTokens-1, 1, 0), Unequal(MaxTokens, MaxTokens, MaxTokens, MaxTokens)} {
		if _, err := c.Path(0, b); err != nil {
			t.Errorf("%s: %v", b, err)
		}
	}
	if _, err := c.Fill(context.Background(), []int{0, 4}, []Batch{Unequal(1, 2, 3, 4)}, nil); !errors.Is(err, ErrSpec) {
		t.Errorf("rank 4 of 4: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("what was refused left a folder")
	}
}

// Entries of equal batches are where they were, byte for byte, since the first
// release of the schema; vectors of equal numbers are those same entries.
func TestEntriesStayWhereTheyAre(t *testing.T) {
	s := specOf(t, small(router.Renormalize), 4)
	const want = "test_e16_k2_dep4_diagonal_float32_r1_t3_60cb0c455bf4f7119cbbd95627c1a4b6.safetensors"
	for _, b := range []Batch{Equal(3), Unequal(3, 3, 3, 3)} {
		name, content := oneEntry(t, s, 1, b)
		if crc := crc32.ChecksumIEEE(content); name != want || crc != 0x3492384c {
			t.Errorf("%s: %s with CRC %#x, want %s", b, name, crc, want)
		}
	}
	// Others say in their name what they are.
	if name, _ := oneEntry(t, s, 1, Unequal(9, 2, 0, 5)); !strings.HasPrefix(name, "test_e16_k2_dep4_diagonal_float32_r1_t9-2-0-5_") {
		t.Errorf("an unequal batch lies at %s", name)
	}
}

// Worked out by hand for 16 experts, top-2, 4 ranks of 4 experts.
func TestBalanceOfUnequalBatches(t *testing.T) {
	for _, c := range []struct {
		batch               Batch
		expert, rank        float64
		active, ideal, most int
	}{
		{Unequal(3, 0, 4, 1), 1, 1, 16, 16, 4},                 // 8 tokens, 16 slots: 1 each, 4 per rank
		{Unequal(1, 0, 0, 2), 16. / 6, 8. / 6, 6, 6, 2},        // 6 slots: 6 experts with 1, some rank has 2
		{Unequal(0, 0, 0, 1), 8, 2, 2, 2, 1},                   // 2 slots on 2 experts of 2 ranks
		{Unequal(9, 9, 9, 10), 80. / 74, 76. / 74, 16, 16, 19}, // 74 slots: some expert has 5, some rank 19
	} {
		dir := t.TempDir()
		fill(t, openCache(t, dir, specOf(t, small(router.Renormalize), 4)), c.batch)
		s := verified(t, dir)
		b := s.Batches[0]
		got := [...]float64{float64(b.Experts.MaxOverMean), float64(b.Ranks.MaxOverMean)}
		if want := [...]float64{c.expert, c.rank}; got != want || b.Experts.Active != c.active || b.ActiveIdeal != c.ideal || !b.AtFloor() {
			t.Errorf("%s: max/mean %v, active %d of %d, at floor %v; want %v, %d of %d", c.batch, got, b.Experts.Active, b.ActiveIdeal, b.AtFloor(), want, c.active, c.ideal)
		}
		// Counted again from the files, by an engine that knows nothing of surveys.
		if got := busiestRank(t, s.Entries); got != c.most {
			t.Errorf("%s: %d slots on the busiest rank, want %d", c.batch, got, c.most)
		}
	}
}

func busiestRank(t *testing.T, entries []EntrySurvey) int {
	t.Helper()
	var perRank [4]int
	for _, l := range entries {
		e, err := ReadEntry(l.Path)
		if err != nil {
			t.Fatal(err)
		}
		for _, expert := range e.IDs {
			perRank[expert/4]++
		}
	}
	return slices.Max(perRank[:])
}

// Lies about a batch whose ranks differ, with a correct checksum.
func TestLiesAboutTheTokensOfRanks(t *testing.T) {
	name, whole := oneEntry(t, biasedSpec(t), 1, Unequal(5, 3))
	check := newChecker(new(plans))
	for value, want := range map[string]string{
		"3,5":        "want the name",
		"4,3":        "want the name",
		"5,3,1":      "each of 2 ranks, have 3: [5 3 1]",
		"5":          "each of 2 ranks, have 1",
		"":           "each of 2 ranks, have 0",
		"3,3":        `"tokens_per_rank": want "3", found ""`,
		"5, 3":       "whole numbers with commas",
		"-5,3":       "whole numbers with commas",
		"05,3":       `want "5,3", found "05,3"`,
		"99999999,3": "0 to 16777216 tokens per rank",
	} {
		if err := check.proves(name, rewrite(t, whole, set(keyOfRanks, value))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want something about %q", value, err, want)
		}
	}
	if err := check.proves(name, rewrite(t, whole, set(keyTokens, "3"))); err == nil || !strings.Contains(err.Error(), "no such key") {
		t.Errorf("both keys: %v", err)
	}
	// What rank 1 does beside a rank of 5 tokens is not what it does beside one of
	// 4, and a file that says so under the right name is still found out.
	var right string
	other := rewrite(t, whole, func(meta map[string]string, _ map[string][]byte) {
		meta[keyOfRanks] = "4,3"
		right = claimed(meta)
	})
	if err := check.proves(right, other); err == nil || !strings.Contains(err.Error(), "by plan diagonal/1") {
		t.Errorf("relabelled: %v", err)
	}
}

// Two batches of 8 tokens in which rank 1 holds as many: its files have the same
// size, and each is good only in its own place.
func TestVerifyFindsSwappedBatches(t *testing.T) {
	dir := t.TempDir()
	c := openCache(t, dir, specOf(t, small(router.Renormalize), 4))
	batches := []Batch{Unequal(1, 3, 0, 4), Unequal(1, 3, 4, 0)}
	fill(t, c, batches...)
	if s := verified(t, dir); len(s.Entries) != 8 || len(s.Batches) != 2 {
		t.Fatalf("%d entries of %d batches, want 8 of 2", len(s.Entries), len(s.Batches))
	}
	var paths [2]string
	for i, b := range batches {
		path, err := c.Path(1, b)
		if err != nil {
			t.Fatal(err)
		}
		paths[i] = path
	}
	aside := filepath.Join(dir, "aside")
	for _, move := range [][2]string{{paths[0], aside}, {paths[1], paths[0]}, {aside, paths[1]}} {
		if err := os.Rename(move[0], move[1]); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Verify(context.Background(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range s.Entries {
		swapped := slices.Contains(paths[:], e.Path)
		if swapped != (e.Err != nil) || swapped && !strings.Contains(e.Fault(), "found it under another") {
			t.Errorf("%s: %v", filepath.Base(e.Path), e.Err)
		}
	}
	for _, b := range s.Batches {
		if !slices.Equal(b.MissingRanks, []int{1}) || b.Ranks.MaxOverMean.Defined() {
			t.Errorf("%s: missing %v, rank max/mean %v", b.Batch, b.MissingRanks, b.Ranks.MaxOverMean)
		}
	}
}

// A step in which nobody has tokens is as even as can be, but not with ranks gone.
func TestABatchWithoutTokens(t *testing.T) {
	dir := t.TempDir()
	c := openCache(t, dir, specOf(t, small(router.Renormalize), 2))
	fill(t, c, Equal(0))
	if b := verified(t, dir).Batches[0]; b.Ranks.MaxOverMean.Defined() || b.Floors.Rank.Defined() || !b.AtFloor() {
		t.Errorf("%+v", b)
	}
	path, err := c.Path(1, Unequal(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	s, err := Verify(context.Background(), dir, nil)
	if err != nil || s.Batches[0].AtFloor() {
		t.Errorf("a rank is missing: at the floor %v, %v", s.Batches[0].AtFloor(), err)
	}
}

// A rank without tokens has an entry of no rows, and misses when it is gone.
func TestARankWithoutTokens(t *testing.T) {
	dir := t.TempDir()
	c := openCache(t, dir, specOf(t, small(router.Renormalize), 4))
	b := Unequal(2, 0, 1, 1)
	fill(t, c, b)
	e, err := c.Get(1, b)
	if err != nil || e.Tokens() != 0 || len(e.IDs) != 0 || e.Logits == nil || len(e.Logits) != 0 {
		t.Fatalf("%+v, %v", e, err)
	}
	path, err := c.Path(1, b)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	s, err := Verify(context.Background(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if last := s.Entries[len(s.Entries)-1]; last.Path != path || !errors.Is(last.Err, ErrMissing) || s.Batches[0].Ranks.MaxOverMean.Defined() {
		t.Errorf("%s: %v, balance %v", filepath.Base(last.Path), last.Err, s.Batches[0].Ranks.MaxOverMean)
	}
}

// An engine whose batches never repeat must not fill its memory with plans.
func TestACacheForgetsOldPlans(t *testing.T) {
	c := openCache(t, t.TempDir(), specOf(t, small(router.Renormalize), 4))
	path := func(n int) string {
		p, err := c.Path(0, Unequal(n, 0, 0, 1))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first := path(0)
	for n := range 10 * keptPlans {
		path(n)
	}
	if len(c.plans.made) != keptPlans || len(c.plans.order) != keptPlans {
		t.Errorf("%d plans kept in the order of %d, want %d", len(c.plans.made), len(c.plans.order), keptPlans)
	}
	if again := path(0); again != first {
		t.Errorf("a forgotten batch lies at %s, and lay at %s", again, first)
	}
}

func TestBatchesInOrder(t *testing.T) {
	want := []Batch{Equal(0), Equal(2), Unequal(10, 10), Unequal(0, 3), Unequal(1, 2), Unequal(1, 10), Unequal(2, 1)}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, Batch.compare)
	for i := range want {
		if got[i].String() != want[i].String() {
			t.Errorf("place %d: %s, want %s", i, got[i], want[i])
		}
	}
}
