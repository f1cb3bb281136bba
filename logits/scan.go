package logits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router"
)

// Verify checks every entry of a folder: whole, undamaged, under the name its
// content has, made by the plan it names, and routed by the exact method of its
// gate, token by token, to the experts it promises with equal weights, on all tep
// ranks the same. Of a batch size that lacks ranks the missing entries are listed
// too. each, when not nil, is called after every file, from one goroutine at a time.
// The error is about the folder; those of entries are in the result.
func Verify(ctx context.Context, dir string, each func(done, total int)) (Verification, error) {
	return scan(ctx, dir, each, (*checker).check)
}

// List reads the records and experts of a folder's entries, but no logits, and
// checks nothing beyond their form.
func List(ctx context.Context, dir string, each func(done, total int)) (Verification, error) {
	return scan(ctx, dir, each, func(c *checker, _ context.Context, f *safetensors.File, r Record) ([]int32, error) {
		return c.stored, c.readIDs(f, r)
	})
}

// visitor reads the experts of an opened entry and what else it has to. They are
// valid until the next call with the same checker.
type visitor func(*checker, context.Context, *safetensors.File, Record) (ids []int32, err error)

func scan(ctx context.Context, dir string, each func(done, total int), visit visitor) (Verification, error) {
	files, err := entryFiles(dir)
	if err != nil {
		return Verification{}, err
	}
	v := Verification{SchemaVersion: VerificationSchema, Kind: VerificationKind, Balance: []BatchBalance{},
		Entries: make([]EntryStatus, len(files))}
	batches := batchSet{entries: v.Entries, byKey: map[string]*batch{}, specs: map[string]Spec{}}
	known := new(plans)
	checkers := sync.Pool{New: func() any { return newChecker(known) }}
	var mu sync.Mutex
	done := 0
	err = forEach(ctx, runtime.GOMAXPROCS(0), len(files), func(ctx context.Context, i int) error {
		c := checkers.Get().(*checker)
		defer checkers.Put(c)
		e := &v.Entries[i]
		e.Path = filepath.Join(dir, files[i])
		record, ids, err := c.visit(ctx, e, visit)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			e.fail(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if record != nil {
			batches.add(i, *record, ids)
		}
		done++
		if each != nil {
			each(done, len(files))
		}
		return nil
	})
	if err != nil {
		return Verification{}, err
	}
	batches.finish(dir, &v)
	return v, nil
}

// entryFiles lists the files of a folder that are entries or pretend to be, by
// name. Temporaries of writers at work are passed over.
func entryFiles(dir string) ([]string, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		if at := (*fs.PathError)(nil); errors.As(err, &at) {
			err = at.Err
		}
		if errors.Is(err, syscall.ENOTDIR) {
			return nil, fmt.Errorf("%q is a file: want the folder of a cache", dir)
		}
		return nil, fmt.Errorf("no folder of entries at %q: %w; make one with 'moebalance logits generate --cache %s'",
			dir, err, dir)
	}
	var files []string
	for _, e := range list {
		if !e.IsDir() && strings.HasSuffix(e.Name(), suffix) && !strings.HasPrefix(e.Name(), ".") {
			files = append(files, e.Name())
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf(
			"folder %q holds no entries (*%s): make some with 'moebalance logits generate --cache %s'", dir, suffix,
			dir)
	}
	return files, nil
}

// visit opens an entry, takes down what it says and lets the visitor read it. The
// record is nil where it cannot be read.
func (c *checker) visit(ctx context.Context, e *EntryStatus, visit visitor) (record *Record, ids []int32, err error) {
	f, err := safetensors.Open(e.Path)
	if err != nil {
		if info, statErr := os.Stat(e.Path); statErr == nil {
			e.Bytes = info.Size()
		}
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	e.Bytes = f.Size()
	r, err := readRecord(f)
	if err != nil {
		return nil, nil, err
	}
	e.describe(r)
	ids, err = visit(c, ctx, f, r)
	return &r, ids, err
}

// batch gathers the entries of one batch size.
type batch struct {
	record    Record // of its first entry
	family    string
	load      router.Load
	count     int
	bytes     int64
	good      []bool // by rank: its entry is there and good
	projected bool   // one of them is
	// In tep mode every rank holds all tokens, and must send them the same way.
	digests []uint64  // by rank, of the good: of its experts
	entry   []int     // by rank, of the good: the number of its entry
	ids     [][]int32 // by rank, of the good, of a periodic entry
}

// batchSet sorts entries by their batch sizes.
type batchSet struct {
	entries []EntryStatus
	byKey   map[string]*batch
	specs   map[string]Spec // by family
}

// add takes entry number i into its batch's load. In tep mode all ranks hold the
// same tokens, which count once. Batches of one family share one spec, so that a
// thousand of them keep one layout.
func (s *batchSet) add(i int, r Record, ids []int32) {
	e, family := s.entries[i], r.family()
	key := fmt.Sprintf("%s t%d", family, r.Tokens)
	b := s.byKey[key]
	if b == nil {
		if spec, ok := s.specs[family]; ok {
			r.Spec = spec
		}
		s.specs[family] = r.Spec
		ranks := r.Spec.Layout.Ranks()
		b = &batch{
			record: r, family: family, load: router.NewLoad(r.Spec.Gate.Shape.Experts),
			good: make([]bool, ranks), digests: make([]uint64, ranks), entry: make([]int, ranks),
			ids: make([][]int32, ranks),
		}
		s.byKey[key] = b
	}
	b.bytes += e.Bytes
	b.count++
	if e.Err != nil {
		return
	}
	if r.Spec.Mode == router.DEP || !slices.Contains(b.good, true) {
		b.load.Add(ids)
	}
	if r.Tokens == AnyTokens {
		b.ids[r.Rank] = slices.Clone(ids)
	}
	b.good[r.Rank], b.digests[r.Rank], b.entry[r.Rank] = true, digest(ids), i
	b.projected = b.projected || r.Feasibility.ProjectedRows > 0
}

// digest is FNV-1a over whole numbers: equal lists have equal digests, and others
// but for a chance of 2⁻⁶⁴.
func digest(ids []int32) uint64 {
	h := uint64(14695981039346656037)
	for _, id := range ids {
		h = (h ^ uint64(uint32(id))) * 1099511628211
	}
	return h
}

// finish adds the balance of every batch, and the entries that are missing.
func (s *batchSet) finish(dir string, v *Verification) {
	paths := make(map[string]bool, len(s.entries))
	for _, e := range s.entries {
		paths[e.Path] = true
	}
	order := func(a, b *batch) int {
		x, y := a.record.Spec, b.record.Spec
		return cmp.Or(
			cmp.Compare(x.Model, y.Model), cmp.Compare(x.Plan, y.Plan), cmp.Compare(x.DType, y.DType),
			cmp.Compare(x.Layer, y.Layer),
			cmp.Compare(a.family, b.family), cmp.Compare(a.record.Tokens, b.record.Tokens))
	}
	for _, b := range slices.SortedFunc(maps.Values(s.byKey), order) {
		b.compareRanks(s.entries)
		balance := b.balance()
		v.Balance = append(v.Balance, balance)
		for _, rank := range balance.MissingRanks {
			r := b.record
			r.Rank = rank
			e := EntryStatus{Path: filepath.Join(dir, fileName(r.Spec.identify(r.PlanName, rank, r.extent())))}
			if !paths[e.Path] {
				e.describe(r)
				e.fail(fmt.Errorf("%w: want one for each of %d ranks, have none for rank %d", ErrMissing, len(b.good),
					rank))
				v.Entries = append(v.Entries, e)
			}
		}
	}
}

// compareRanks finds the tep ranks that do not route as the first one does. The
// tokens are the same ones on all of them, so no router would do that: such a plan
// has no load that could come about.
func (b *batch) compareRanks(entries []EntryStatus) {
	first := slices.Index(b.good, true)
	if b.record.Spec.Mode != router.TEP || first < 0 {
		return
	}
	for rank := first + 1; rank < len(b.good); rank++ {
		if b.good[rank] && b.digests[rank] != b.digests[first] {
			b.good[rank] = false
			entries[b.entry[rank]].fail(
				fmt.Errorf("in tep mode all ranks hold the same tokens: want them routed as on rank %d, have another routing on "+
					"rank %d", first, rank))
		}
	}
}

// balance is the balance of the batch, undefined while ranks are missing.
func (b *batch) balance() BatchBalance {
	s, tokens := b.record.Spec, b.record.Tokens
	v := BatchBalance{
		Model: s.Model, Method: s.Gate.Method, Plan: b.record.PlanName, Mode: s.Mode, Layer: s.Layer, DType: s.DType,
		Ranks: s.Layout.Ranks(), TokensPerRank: router.OptInt(tokens),
		ExpertMaxOverMean: router.Undefined(), RankMaxOverMean: router.Undefined(), ActiveExperts: router.Undefined(),
		Projected: b.projected, Entries: b.count, Bytes: b.bytes,
	}
	for rank, good := range b.good {
		if !good {
			v.MissingRanks = append(v.MissingRanks, rank)
		}
	}
	experts, copies, ranks := b.load.Experts(), b.load.Copies(s.Layout), b.load.Ranks(s.Layout)
	busiest := int64(0) // unknown
	if len(v.MissingRanks) == 0 {
		busiest = int64(ranks.Max)
	}
	floors := s.problem(b.record.Rows).Floors(busiest)
	v.ExpertFloor, v.RankFloor, v.ActiveExpertsIdeal = floors.Expert, floors.Rank, floors.Active
	if len(v.MissingRanks) == 0 {
		v.ExpertMaxOverMean, v.RankMaxOverMean, v.ActiveExperts = experts.MaxOverMean, ranks.MaxOverMean,
			router.Number(experts.Active)
		v.AtFloor = !(ranks.MaxOverMean > floors.Rank) && !(copies.MaxOverMean > floors.Copy)
		if tokens == AnyTokens {
			v.Certificate = certify(b.record, b.ids)
			v.AtFloor = v.Certificate.Optimal()
		}
	}
	return v
}
