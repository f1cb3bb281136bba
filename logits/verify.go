package logits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/plan"
)

// Verify makes every entry of a cache anew and compares it with its file, byte for byte, and
// routes it by the exact method of the gate, token by token: to the experts that it promises,
// with equal weights, on all tep ranks the same. Of a batch size that lacks ranks the
// missing entries are listed too. each, when not nil, is called after every file, from one
// goroutine at a time. The error is about the folder; those of entries are in the result.
func Verify(ctx context.Context, dir string, each func(done, total int)) (Verification, error) {
	return scan(ctx, dir, each, true)
}

// List is Verify without a look into the files, and without routing: their sizes alone are
// checked.
func List(ctx context.Context, dir string, each func(done, total int)) (Verification, error) {
	return scan(ctx, dir, each, false)
}

// batch is the entries of one plan and batch size.
type batch struct {
	plan   string
	tokens int
}

func (b batch) compare(other batch) int {
	return cmp.Or(strings.Compare(b.plan, other.plan), cmp.Compare(b.tokens, other.tokens))
}

func scan(ctx context.Context, dir string, each func(done, total int), thorough bool) (Verification, error) {
	v := Verification{SchemaVersion: VerificationSchema, Kind: VerificationKind, Balance: []BatchBalance{},
		Entries: []EntryStatus{}}
	spec, text, err := readManifest(dir)
	if err != nil {
		return v, err
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return v, err
	}
	c := &Cache{dir: dir, spec: spec, manifest: text}
	sizes, found := map[string]int64{}, map[batch]bool{}
	for _, f := range files {
		if f.IsDir() || strings.HasPrefix(f.Name(), ".") || !strings.HasSuffix(f.Name(), suffix) {
			continue
		}
		sizes[f.Name()] = 0
		if info, err := f.Info(); err == nil {
			sizes[f.Name()] = info.Size()
		}
		if name, rank, tokens, ok := parseEntryName(f.Name()); ok && rank < spec.Layout.Ranks() {
			found[batch{name, tokens}] = true
		} else {
			v.Entries = append(v.Entries, failed(EntryStatus{Path: filepath.Join(dir, f.Name())},
				errors.New("want the name of an entry, such as "+entryName(plan.Names()[0], 0, AnyTokens))))
		}
	}
	if len(sizes) == 0 {
		return v, fmt.Errorf("cache %q holds no entries (*%s): make some with 'moebalance logits generate --cache %s'", dir,
			suffix, dir)
	}
	var mu sync.Mutex
	done := len(v.Entries)
	for _, b := range slices.SortedFunc(maps.Keys(found), batch.compare) {
		checked, err := c.check(ctx, b, sizes, thorough, func() {
			mu.Lock()
			defer mu.Unlock()
			if done++; each != nil {
				each(done, len(sizes))
			}
		})
		if err != nil {
			return v, err
		}
		v.Balance, v.Entries = append(v.Balance, checked.balance(c.spec)), append(v.Entries, checked.entries...)
	}
	return v, nil
}

// checked is what a scan found of a batch.
type checked struct {
	planned
	entries []EntryStatus // by rank
	ids     [][]int32     // by rank, of the good; in tep mode of one rank alone
	good    []bool        // by rank
	bytes   int64
	there   int
}

// check checks the entries of one batch. What a file is compared with is made from the
// manifest alone.
func (c *Cache) check(ctx context.Context, b batch, sizes map[string]int64, thorough bool, each func()) (checked, error) {
	ranks := c.spec.Layout.Ranks()
	v := checked{entries: make([]EntryStatus, ranks), ids: make([][]int32, ranks), good: make([]bool, ranks)}
	p, planErr := c.plan(b.plan, b.tokens)
	v.planned = p
	err := forEach(ctx, ranks, func(ctx context.Context, rank int) error {
		name := entryName(b.plan, rank, b.tokens)
		size, there := sizes[name]
		e := &v.entries[rank]
		*e = c.status(p, b, rank)
		if e.Path = filepath.Join(c.dir, name); !there {
			*e = failed(*e, fmt.Errorf("entry is missing: want one for each of %d ranks, have none for rank %d", ranks, rank))
			return nil
		}
		defer each()
		e.Bytes = size
		feasibility, ids, err := Feasibility{}, []int32(nil), planErr
		if err == nil {
			feasibility, ids, err = c.verify(ctx, p, rank, e.Path, thorough)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if e.Status = feasibility.Status(); err != nil {
			*e = failed(*e, err)
			return nil
		}
		v.good[rank], v.ids[rank] = true, ids
		return nil
	})
	first := slices.Index(v.good, true)
	for rank := range v.entries {
		if v.entries[rank].Bytes > 0 || v.good[rank] {
			v.there++
		}
		v.bytes += v.entries[rank].Bytes
		// In tep mode the tokens are the same ones on all ranks, so no router would send them
		// elsewhere.
		if c.spec.Mode == router.TEP && v.good[rank] && !slices.Equal(v.ids[rank], v.ids[first]) {
			v.good[rank] = false
			v.entries[rank] = failed(v.entries[rank], fmt.Errorf("in tep mode all ranks hold the same tokens: want them "+
				"routed as on rank %d, have another routing on rank %d", first, rank))
		}
	}
	return v, err
}

// verify compares one entry with what is made for it, and routes it. The ids are its experts.
func (c *Cache) verify(ctx context.Context, p planned, rank int, path string, thorough bool) (Feasibility, []int32, error) {
	e, err := c.writer()
	if err != nil {
		return Feasibility{}, nil, err
	}
	defer c.writers.Put(e)
	if thorough {
		w, err := compareEntry(ctx, e, p, rank, path)
		if err == nil {
			err = e.route(ctx)
		}
		return w.feasibility, slices.Clone(e.ids), err
	}
	info, err := os.Stat(path)
	switch content := c.spec.contentBytes(p.Rows); {
	case err != nil:
		return Feasibility{}, nil, err
	case !info.Mode().IsRegular() || info.Size() < content:
		return Feasibility{}, nil, fmt.Errorf("want a regular file of %d bytes and more, have %s of %d", content,
			info.Mode().Type(), info.Size())
	}
	f, err := e.assign(p, rank)
	return f, slices.Clone(e.ids), err
}

// route routes every distinct row of the ids and compares the choice and the weights with
// what they promise: those of a periodic plan come again and again.
func (e *entryWriter) route(ctx context.Context) error {
	const most = 1 << 14 // rows remembered
	routed, key, token := map[string]bool{}, []byte(nil), 0
	for row := range slices.Chunk(e.ids, len(e.picked)) {
		key = key[:0]
		for _, id := range row {
			key = append(key, byte(id), byte(id>>8))
		}
		if !routed[string(key)] {
			same, err := e.picks(row)
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case err != nil:
				return fmt.Errorf("token %d: %w", token, err)
			case !same:
				return fmt.Errorf("token %d: want the router to pick experts %v, have %v", token, row, e.picked)
			case !fair(e.weights):
				return fmt.Errorf("token %d: want equal weights, have %v", token, e.weights)
			}
			if len(routed) < most {
				routed[string(key)] = true
			}
		}
		token++
	}
	return nil
}

// fair reports weights that are all equal.
func fair(weights []float32) bool { return slices.Min(weights) == slices.Max(weights) }

// status is what the manifest and the name of an entry say.
func (c *Cache) status(p planned, b batch, rank int) EntryStatus {
	s := c.spec
	e := EntryStatus{Model: s.Model, Method: s.Gate.Method, Experts: s.Gate.Shape.Experts, TopK: s.Gate.Shape.TopK,
		Ranks: s.Layout.Ranks(), Rank: router.OptInt(rank), TokensPerRank: router.OptInt(b.tokens), DType: s.DType,
		Plan: b.plan}
	if p.Plan != nil {
		e.Plan = p.Name()
	}
	if p.Plan != nil && b.tokens == AnyTokens {
		e.Extent = &p.Extent
	}
	return e
}

func failed(e EntryStatus, err error) EntryStatus {
	e.Status = failedPrefix + err.Error()
	if about := new(input.Error); errors.As(err, &about) {
		e.Status = failedPrefix + about.Fault()
	}
	return e
}

// balance is the balance of the batch, undefined while ranks are missing. Where the layers of
// a plan have tables of their own it is the first one's.
func (b checked) balance(s Spec) BatchBalance {
	v := BatchBalance{
		Model: s.Model, Method: s.Gate.Method, Plan: b.entries[0].Plan, Mode: s.Mode, Layer: s.Layer, DType: s.DType,
		Ranks: s.Layout.Ranks(), TokensPerRank: b.entries[0].TokensPerRank, Entries: b.there, Bytes: b.bytes,
		ExpertMaxOverMean: router.Undefined(), RankMaxOverMean: router.Undefined(), ActiveExperts: router.Undefined(),
		ExpertFloor: router.Undefined(), RankFloor: router.Undefined(), Drawn: plan.Drawn(b.asked),
	}
	for rank, good := range b.good {
		if !good {
			v.MissingRanks = append(v.MissingRanks, rank)
		}
		v.Projected = v.Projected || b.entries[rank].Status == Feasibility{ProjectedRows: 1}.Status()
	}
	if b.Plan == nil {
		return v
	}
	problem := s.problem(b.Rows / b.Layers)
	floors := problem.Floors(0)
	if len(v.MissingRanks) == 0 {
		load := router.NewLoad(s.Gate.Shape.Experts)
		for _, ids := range b.ids[:len(problem.Sources())] {
			load.Add(ids[:len(ids)/b.Layers])
		}
		ranks, experts, copies := load.Ranks(s.Layout), load.Experts(), load.Copies(s.Layout)
		floors = problem.Floors(int64(max(0, ranks.Max)))
		v.ExpertMaxOverMean, v.RankMaxOverMean, v.ActiveExperts = experts.MaxOverMean, ranks.MaxOverMean,
			router.Number(experts.Active)
		v.AtFloor = !(ranks.MaxOverMean > floors.Rank) && !(copies.MaxOverMean > floors.Copy)
		if b.tokens == AnyTokens && !v.Drawn {
			k := s.Gate.Shape.TopK
			proof := plan.ProveRows(problem, b.Rows, b.Period, func(source, token int) []int32 {
				return b.ids[source][token*k:][:k]
			})
			v.Certificate, v.AtFloor = &proof, proof.Optimal()
		}
	}
	v.ExpertFloor, v.RankFloor, v.ActiveExpertsIdeal = floors.Expert, floors.Rank, floors.Active
	return v
}
