package logits

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/plan"
)

// deepSeek is the gate of DeepSeek-V3.
func deepSeek() router.Gate {
	return router.Gate{Method: router.DeepSeekV3, Scale: 2.5, Shape: router.Shape{Experts: 256, TopK: 8, Groups: 8,
		TopKGroups: 4}}
}

// small is a gate of 16 experts, top-2, for any method.
func small(m router.Method) router.Gate {
	return router.Gate{Method: m, Scale: 1, Shape: router.Shape{Experts: 16, TopK: 2}}
}

func specOf(t testing.TB, g router.Gate, ranks int) Spec {
	t.Helper()
	layout, err := router.Contiguous(g.Shape.Experts, ranks)
	if err != nil {
		t.Fatal(err)
	}
	return Spec{Model: "test", Gate: g, Layout: layout, Mode: router.DEP}
}

// writerOf readies a spec and an entry writer for it.
func writerOf(t testing.TB, s Spec) (Spec, *entryWriter) {
	t.Helper()
	s, err := s.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	m, err := newEntryWriter(s)
	if err != nil {
		t.Fatal(err)
	}
	return s, m
}

func openCache(t testing.TB, dir string, s Spec) *Cache {
	t.Helper()
	c, err := Open(dir, s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func allRanks(n int) []int {
	ranks := make([]int, n)
	for i := range ranks {
		ranks[i] = i
	}
	return ranks
}

func fill(t testing.TB, c *Cache, tokens ...int) []Outcome {
	t.Helper()
	list, err := c.Fill(context.Background(), allRanks(c.Spec().Layout.Ranks()), tokens, nil)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// verified checks that every entry of the folder is good and returns what was found.
func verified(t testing.TB, dir string) Verification {
	t.Helper()
	s, err := Verify(context.Background(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range s.Entries {
		if e.Err != nil {
			t.Fatalf("%s: %v", filepath.Base(e.Path), e.Err)
		}
	}
	return s
}

func names(t testing.TB, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}

// Every kind of entry, in memory: made, checked, read back and routed the way an
// engine would.
func TestEveryMethodTypeAndModeRoundTrips(t *testing.T) {
	for _, method := range router.Methods() {
		for _, d := range DTypes {
			for _, mode := range []router.Mode{router.DEP, router.TEP} {
				t.Run(fmt.Sprintf("%s/%s/%s", method, d, mode), func(t *testing.T) {
					s := specOf(t, small(method), 4)
					s.DType, s.Mode = DType(d), mode
					s, w := writerOf(t, s)
					c := newChecker(new(plans))
					var file memory
					for _, b := range []int{0, 1, 3, 8} {
						for rank := range 4 {
							if _, err := writeAndCheck(s, w, c, &file, rank, b); err != nil {
								t.Fatalf("rank %d, %d tokens: %v", rank, b, err)
							}
							f, err := safetensors.Read(nameOf(t, s, rank, b), bytes.NewReader(file.b),
								int64(len(file.b)))
							if err != nil {
								t.Fatal(err)
							}
							e, err := readEntry(f)
							if err != nil {
								t.Fatal(err)
							}
							checkEntry(t, e, s, b)
						}
					}
				})
			}
		}
	}
}

func nameOf(t testing.TB, s Spec, rank, tokens int) string {
	t.Helper()
	plan, err := s.plan(tokens)
	if err != nil {
		t.Fatal(err)
	}
	return fileName(s.identify(plan.Name(), rank, sized(tokens)))
}

// checkEntry routes an entry the way an engine would: logits in, experts out.
func checkEntry(t *testing.T, e *Entry, s Spec, tokens int) {
	t.Helper()
	k := s.Gate.Shape.TopK
	if e.Tokens != tokens || len(e.IDs) != tokens*k || e.Logits == nil {
		t.Fatalf("%d tokens, %d ids and %d logit bytes for %d tokens", e.Tokens, len(e.IDs), len(e.Logits), tokens)
	}
	r, err := router.NewRouter(s.Gate)
	if err != nil {
		t.Fatal(err)
	}
	ids, weights := make([]int32, k), make([]float32, k)
	var row []float32
	for token := range tokens {
		row = e.Row(row, token)
		if err := r.Route(row, ids, weights); err != nil {
			t.Fatal(err)
		}
		want := slices.Sorted(slices.Values(e.IDs[token*k : (token+1)*k]))
		if got := slices.Sorted(slices.Values(ids)); !slices.Equal(got, want) {
			t.Fatalf("token %d: routed to %v, the entry says %v", token, got, want)
		}
		if slices.Min(weights) != slices.Max(weights) {
			t.Fatalf("token %d: weights %v", token, weights)
		}
	}
}

func TestBalanceOverAllRanksTogether(t *testing.T) {
	for _, c := range []struct {
		mode   router.Mode
		tokens int
		// Worked out by hand for 16 experts, top-2, 4 ranks. In dep mode T tokens per
		// rank make 8T slots, in tep mode 2T.
		expert, expertFloor, rank float64
		active, ideal             int
	}{
		{router.DEP, 1, 2, 2, 1, 8, 8},             // 8 slots: 8 experts with 1, mean 1/2
		{router.DEP, 8, 1, 1, 1, 16, 16},           // 64 slots: 4 each
		{router.TEP, 1, 8, 8, 2, 2, 2},             // 2 slots: mean 1/8 per expert, 1/2 per rank
		{router.TEP, 8, 1, 1, 1, 16, 16},           // 16 slots: 1 each
		{router.DEP, 3, 4. / 3, 4. / 3, 1, 16, 16}, // 24 slots: mean 3/2, so some expert has 2
	} {
		s := specOf(t, small(router.Renormalize), 4)
		s.Mode = c.mode
		dir := t.TempDir()
		fill(t, openCache(t, dir, s), c.tokens)
		b := verified(t, dir).Balance[0]
		got := [...]float64{float64(b.ExpertMaxOverMean), float64(b.ExpertFloor), float64(b.RankMaxOverMean)}
		if want := [...]float64{c.expert, c.expertFloor, c.rank}; got != want || int(b.ActiveExperts) != c.active ||
			b.ActiveExpertsIdeal != c.ideal {
			t.Errorf("%s, %d tokens: max/mean, floor, ranks %v, active %d of %d; want %v, %d of %d",
				c.mode, c.tokens, got, int(b.ActiveExperts), b.ActiveExpertsIdeal, want, c.active, c.ideal)
		}
	}
}

// Where ranks own unequally many experts the floors come from the layout: 5
// experts on 2 ranks (3 and 2), top-2, 1 token each: 4 slots, 2 per rank.
func TestFloorsOfUnequalRanks(t *testing.T) {
	g := router.Gate{Method: router.Renormalize, Shape: router.Shape{Experts: 5, TopK: 2}}
	dir := t.TempDir()
	fill(t, openCache(t, dir, specOf(t, g, 2)), 1, 6)
	for _, b := range verified(t, dir).Balance {
		if b.RankFloor != 1 || b.RankMaxOverMean != 1 || !b.AtFloor {
			t.Errorf("%+v", b)
		}
	}
}

// One token of DeepSeek-V3 that all ranks hold meets 4 of 8 groups, so 4 of 8
// ranks: its 8 slots are 2 on some rank at least, twice the mean.
func TestFloorOfOneToken(t *testing.T) {
	s := specOf(t, deepSeek(), 8)
	s.Mode = router.TEP
	dir := t.TempDir()
	fill(t, openCache(t, dir, s), 1)
	b := verified(t, dir).Balance[0]
	if b.RankFloor != 2 || b.RankMaxOverMean != 2 || !b.AtFloor {
		t.Errorf("%+v", b)
	}
}

// With replicas copies are judged: 4 experts, two of them twice, on 2 ranks, 28
// slots. Every copy gets 4 or 5, so experts 0 and 1 get about twice as many slots.
func TestReplicasAreJudgedByCopies(t *testing.T) {
	layout, err := router.Placed(4, [][]int32{{0, 1, 2}, {3, 0, 1}})
	if err != nil {
		t.Fatal(err)
	}
	s := specOf(t, router.Gate{Method: router.Renormalize, Shape: router.Shape{Experts: 4, TopK: 2}}, 2)
	s.Layout = layout
	dir := t.TempDir()
	fill(t, openCache(t, dir, s), 7)
	b := verified(t, dir).Balance[0]
	if b.ExpertMaxOverMean < 8./7 || b.ExpertMaxOverMean <= b.ExpertFloor || !b.AtFloor {
		t.Errorf("%+v", b)
	}
}

// Path is where the entry of a rank, for so many tokens on every rank, is or would be.
func (c *Cache) Path(rank, tokens int) (string, error) {
	t, err := c.target(rank, tokens)
	return t.path, err
}

func TestLogitsInEveryType(t *testing.T) {
	// ±32 = ±2⁵: sign, exponent 5 + bias 127 (or 15 for float16), fraction 0.
	for d, want := range map[DType][2]uint32{
		Float32: {0x42000000, 0xc2000000}, BFloat16: {0x4200, 0xc200}, Float16: {0x5000, 0xd000},
	} {
		if got := [2]uint32{d.encode(32), d.encode(-32)}; got != want {
			t.Errorf("%s: %#x, want %#x", d, got, want)
		}
	}
}

// Every logit that a gate can be given is exact in every type.
func TestLogitsAreExact(t *testing.T) {
	for _, d := range []DType{Float32, BFloat16, Float16} {
		for x := float32(0x1p-14); x <= highest; x *= 2 {
			for _, want := range []float32{x, -x} {
				var have [1]float32
				bits := binary.LittleEndian.AppendUint32(nil, d.encode(want))
				if err := safetensors.Decode(have[:], bits[:d.stored().Size()], d.stored()); err != nil ||
					have[0] != want {
					t.Errorf("%s: %v becomes %v (%v)", d, want, have[0], err)
				}
			}
		}
	}
}

func TestGetMakesOnceAndReadsBack(t *testing.T) {
	s := specOf(t, small(router.Renormalize), 2)
	dir := t.TempDir()
	c := openCache(t, dir, s)
	first, err := c.Get(1, 5)
	if err != nil {
		t.Fatal(err)
	}
	path, err := c.Path(1, 5)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	second, err := openCache(t, dir, s).Get(1, 5)
	if err != nil || !slices.Equal(first.IDs, second.IDs) || !slices.Equal(first.Logits, second.Logits) {
		t.Fatalf("read back otherwise: %v", err)
	}
	if after, err := os.Stat(path); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("written again: %v", err)
	}
	if got := names(t, dir); !slices.Equal(got, []string{filepath.Base(path)}) {
		t.Errorf("folder holds %v", got)
	}
	// The same again, elsewhere: same bytes.
	other := openCache(t, t.TempDir(), s)
	if _, err := other.Get(1, 5); err != nil {
		t.Fatal(err)
	}
	again, err := other.Path(1, 5)
	if err != nil {
		t.Fatal(err)
	}
	a, errA := os.ReadFile(path)
	b, errB := os.ReadFile(again)
	if errA != nil || errB != nil || !slices.Equal(a, b) {
		t.Errorf("the same spec made different bytes (%v, %v)", errA, errB)
	}
}

// Whatever is written first, the answer has the order of the question.
func TestFillAnswersInOrder(t *testing.T) {
	c := openCache(t, t.TempDir(), specOf(t, small(router.Renormalize), 3))
	ranks, batches := []int{2, 0}, []int{2, 0, 5, 1}
	list, err := c.Fill(context.Background(), ranks, batches, nil)
	if err != nil || len(list) != 8 {
		t.Fatal(len(list), err)
	}
	for i, w := range list {
		rank, b := ranks[i%2], batches[i/2]
		path, err := c.Path(rank, b)
		if err != nil {
			t.Fatal(err)
		}
		e, err := ReadEntry(w.Path)
		if err != nil || w.Rank != rank || w.Tokens != b || w.Path != path || e.Tokens != b {
			t.Errorf("place %d: rank %d of %d at %s, want rank %d of %d at %s (%v)", i, w.Rank, w.Tokens, w.Path, rank,
				b, path, err)
		}
	}
}

// What a token costs must not reach the allocator: 2048 tokens allocate what 256
// do, give or take the runtime's own.
func TestNoAllocationPerToken(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	s, w := writerOf(t, specOf(t, deepSeek(), 8))
	c := newChecker(new(plans))
	file := memory{b: make([]byte, 0, 10<<20)}
	cost := func(tokens int) float64 {
		return testing.AllocsPerRun(1, func() {
			if _, err := writeAndCheck(s, w, c, &file, 3, tokens); err != nil {
				t.Fatal(err)
			}
		})
	}
	cost(2048) // grows the scratch space
	// A collection in between would empty the pools of fmt and json, which then
	// allocate some dozens anew; the race detector, which runs short, drops from them at
	// random. One allocation per token would be 1792 more.
	most := 100.0
	if testing.Short() {
		most = 896
	}
	if few, many := cost(256), cost(2048); many > few+most {
		t.Errorf("256 tokens make %v allocations, 2048 make %v", few, many)
	}
}

// What a writer keeps depends on the batch, not on how many ranks there are.
func TestMemoryDoesNotGrowWithTheRanks(t *testing.T) {
	held := func(ranks int) (bytes int) {
		s, w := writerOf(t, specOf(t, deepSeek(), ranks))
		const b = 512
		plan, err := s.plan(b)
		if err != nil {
			t.Fatal(err)
		}
		file := memory{b: make([]byte, 0, 1<<20)}
		for rank := range ranks {
			if _, err := w.write(context.Background(), plan, rank, sized(b), &file); err != nil {
				t.Fatal(err)
			}
		}
		return cap(w.rows.buf) + 4*(cap(w.ids)+cap(w.row)+cap(w.picked)) + cap(w.chunk)
	}
	if few, many := held(2), held(128); many != few {
		t.Errorf("a writer keeps %d bytes after 2 ranks and %d after 128", few, many)
	}
}

// fullDisk takes some bytes and then no more.
type fullDisk struct{ room int64 }

func (d *fullDisk) WriteAt(p []byte, at int64) (int, error) {
	if at+int64(len(p)) > d.room {
		return 0, errors.New("no space left on device")
	}
	return len(p), nil
}

// Every moment at which the disk may fill up ends in an error, never in an entry.
func TestFullDisk(t *testing.T) {
	s, w := writerOf(t, biasedSpec(t))
	plan, err := s.plan(3)
	if err != nil {
		t.Fatal(err)
	}
	whole := fullDisk{room: math.MaxInt64}
	done, err := w.write(context.Background(), plan, 0, sized(3), &whole)
	if err != nil {
		t.Fatal(err)
	}
	for room := range done.bytes {
		if _, err := w.write(context.Background(), plan, 0, sized(3), &fullDisk{room}); err == nil {
			t.Fatalf("%d of %d bytes of room: no error", room, done.bytes)
		}
	}
}

// encode gives what writing every element would, whatever it encoded before.
func TestRowEncoderAgainstWritingEverything(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, d := range []DType{Float32, BFloat16, Float16} {
		const experts, topK = 7, 3
		v := logitPair{high: 2.5, low: -8}
		b := newRowEncoder(router.Shape{Experts: experts, TopK: topK}, d, v)
		for _, tokens := range []int{5, 1, b.rows(), 0, 4} {
			var ids []int32
			var want []byte
			for range tokens {
				row := rng.Perm(experts)[:topK]
				for e := range experts {
					x := v.low
					if slices.Contains(row, e) {
						x = v.high
					}
					want = append(want, byte(d.encode(x)), byte(d.encode(x)>>8))
					if b.size == 4 {
						want = append(want, byte(d.encode(x)>>16), byte(d.encode(x)>>24))
					}
				}
				for _, e := range row {
					ids = append(ids, int32(e))
				}
			}
			if got := b.encode(ids); !bytes.Equal(got, want) {
				t.Fatalf("%s, %d tokens: got %d bytes, want %d", d, tokens, len(got), len(want))
			}
		}
	}
}

func TestBatchesThatRanksCannotHold(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	c := openCache(t, dir, specOf(t, small(router.Renormalize), 4))
	for _, try := range []struct {
		rank, tokens int
		want         string
	}{
		{0, MaxTokens + 1, "0 to 16777216 tokens per rank, have 16777217"},
		{0, -2, "tokens per rank, have -2"},
		{4, 1, "a rank from 0 to 3, have 4"},
		{-1, 1, "a rank from 0 to 3, have -1"},
	} {
		_, getErr := c.Get(try.rank, try.tokens)
		_, fillErr := c.Fill(context.Background(), []int{0, try.rank}, []int{1, try.tokens}, nil)
		for _, err := range []error{getErr, fillErr} {
			if !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), try.want) {
				t.Errorf("rank %d, %d tokens: got %v, want %q", try.rank, try.tokens, err, try.want)
			}
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a refused batch size left a folder")
	}
}

// Entries are where they were, byte for byte, since the first release of their plan:
// largest biases among them, which are stored in float64.
func TestEntriesStayWhereTheyAre(t *testing.T) {
	random := biasedSpec(t)
	random.Plan = "uniform"
	for _, c := range []struct {
		spec Spec
		name string
		crc  uint32
	}{
		{specOf(t, small(router.Renormalize), 4),
			"test_e16_k2_dep4_diagonal_float32_r1_t3_1a5c1916a7edc61df317cc5df8a091a3.safetensors", 0xa37ddb2},
		{random, "test_e16_k2_dep2_uniform_bfloat16_r1_t3_ba118b84792b385cf82830b8349ede37.safetensors", 0x4dc4844e},
	} {
		name, content := oneEntry(t, c.spec, 1, 3)
		if crc := crc32.ChecksumIEEE(content); name != c.name || crc != c.crc {
			t.Errorf("%s with CRC %#x, want %s with %#x", name, crc, c.name, c.crc)
		}
	}
}

// A step in which nobody has tokens is as even as can be, but not with ranks gone.
func TestABatchWithoutTokens(t *testing.T) {
	dir := t.TempDir()
	c := openCache(t, dir, specOf(t, small(router.Renormalize), 2))
	fill(t, c, 0)
	if b := verified(t, dir).Balance[0]; b.RankMaxOverMean.Defined() || b.RankFloor.Defined() || !b.AtFloor {
		t.Errorf("%+v", b)
	}
	e, err := c.Get(1, 0)
	if err != nil || e.Tokens != 0 || len(e.IDs) != 0 || e.Logits == nil || len(e.Logits) != 0 {
		t.Fatalf("%+v, %v", e, err)
	}
	path, err := c.Path(1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	v, err := Verify(context.Background(), dir, nil)
	if err != nil || v.Balance[0].AtFloor {
		t.Errorf("a rank is missing: at the floor %v, %v", v.Balance[0].AtFloor, err)
	}
	if last := v.Entries[len(v.Entries)-1]; last.Path != path || !errors.Is(last.Err, ErrMissing) {
		t.Errorf("%s: %v", last.Path, last.Err)
	}
}

// Two batch sizes whose files of one rank changed places: each is good only in its own.
func TestVerifyFindsSwappedEntries(t *testing.T) {
	dir := t.TempDir()
	c := openCache(t, dir, specOf(t, small(router.Renormalize), 4))
	fill(t, c, 2, 3)
	var paths [2]string
	for i := range paths {
		path, err := c.Path(1, 2+i)
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
	v, err := Verify(context.Background(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range v.Entries {
		swapped := slices.Contains(paths[:], e.Path)
		if swapped != (e.Err != nil) || swapped && !strings.Contains(e.Fault(), "have another name") {
			t.Errorf("%s: %v", filepath.Base(e.Path), e.Err)
		}
	}
}

// A file of 1.2 KiB that claims millions of tokens, as unequal batches once did, is
// refused before they are planned.
func TestAClaimOfManyTokensCostsNothing(t *testing.T) {
	name, whole := oneEntry(t, biasedSpec(t), 1, 0)
	for _, edit := range []func(map[string]string, map[string][]byte){
		set("tokens_per_rank", "16777216"),
		func(meta map[string]string, _ map[string][]byte) {
			delete(meta, "tokens_per_rank")
			meta["tokens_of_ranks"] = "16777216,0"
		},
	} {
		bad := rewrite(t, whole, edit)
		before := new(runtime.MemStats)
		runtime.ReadMemStats(before)
		if err := newChecker(new(plans)).checkBytes(name, bad); err == nil {
			t.Error("accepted")
		}
		after := new(runtime.MemStats)
		if runtime.ReadMemStats(after); after.TotalAlloc-before.TotalAlloc > 1<<20 {
			t.Errorf("%d bytes allocated for a file of %d", after.TotalAlloc-before.TotalAlloc, len(bad))
		}
	}
}

// One entry that fails ends the filling of all others.
func TestAnErrorCancelsTheRest(t *testing.T) {
	failed := errors.New("no space left")
	var calls atomic.Int32
	err := forEach(t.Context(), 2, 1000, func(ctx context.Context, i int) error {
		calls.Add(1)
		if i == 3 {
			return failed
		}
		if i > 3 {
			<-ctx.Done()
		}
		return ctx.Err()
	})
	if !errors.Is(err, failed) || calls.Load() > 6 {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
}

// Two ranks of which one holds the only or first copies of six experts: ranks of four
// slots each activate four of these and two others. A scan and a certificate of the
// same plan must agree about that.
func TestIdealOfActiveExpertsIsThatOfTheCertificate(t *testing.T) {
	g := router.Gate{Method: router.Renormalize, Scale: 1, Shape: router.Shape{Experts: 8, TopK: 2}}
	layout, err := router.Placed(8, [][]int32{{0, 1, 2, 3, 4, 5}, {6, 7, 0, 1}})
	if err != nil {
		t.Fatal(err)
	}
	spec := Spec{Model: "test", Gate: g, Layout: layout, Mode: router.DEP, Plan: "diagonal"}
	dir := t.TempDir()
	fill(t, openCache(t, dir, spec), 2)
	made, err := spec.plan(2)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := plan.Certify(spec.problem(2), made)
	if err != nil {
		t.Fatal(err)
	}
	b := verified(t, dir).Balance[0]
	if b.ActiveExpertsIdeal != 6 || certificate.ActiveExpertsIdeal != 6 || b.ActiveExperts != 6 {
		t.Errorf("%v active of %d by the scan, %d by the certificate; want 6", b.ActiveExperts, b.ActiveExpertsIdeal,
			certificate.ActiveExpertsIdeal)
	}
}

// sized is the extent of an entry of one batch size.
func sized(tokens int) extent { return extent{tokens: tokens, rows: tokens} }
