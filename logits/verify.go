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
	"slices"
	"strings"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/plan"
)

// Verify makes every entry of a cache anew and compares it with its file, byte for byte, and
// routes it by the exact method of the gate, token by token: to the experts that it promises,
// with equal weights, on all tep ranks the same. Of a batch size that lacks ranks the
// missing entries are listed too. each, when not nil, is called after every file, from one
// goroutine at a time. The error is about the folder; each entry has its own in the result.
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

// scanning is the scan of a cache: how far it has come, and what it has found.
type scanning struct {
	*Cache
	Verification
	thorough    bool
	done, total int // files
	each        func(done, total int)
}

func scan(ctx context.Context, dir string, each func(done, total int), thorough bool) (Verification, error) {
	s := scanning{thorough: thorough, each: each, Verification: Verification{SchemaVersion: VerificationSchema,
		Kind: VerificationKind, Balance: []BatchBalance{}, Entries: []EntryStatus{}}}
	spec, text, err := readManifest(dir)
	if err != nil {
		return s.Verification, err
	}
	s.Cache = &Cache{dir: dir, spec: spec, manifest: text}
	found, err := s.list()
	if err != nil {
		return s.Verification, err
	}
	for _, b := range slices.SortedFunc(maps.Keys(found), func(a, b batch) int {
		return cmp.Or(strings.Compare(a.plan, b.plan), cmp.Compare(a.tokens, b.tokens))
	}) {
		if err := s.batch(ctx, b); err != nil {
			return s.Verification, err
		}
	}
	return s.Verification, nil
}

// list finds the batches that have entries; a file with the ending of one and another name is a fault.
func (s *scanning) list() (map[batch]bool, error) {
	files, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	found := map[batch]bool{}
	for _, f := range files {
		if f.IsDir() || strings.HasPrefix(f.Name(), ".") || !strings.HasSuffix(f.Name(), suffix) {
			continue
		}
		s.total++
		if name, rank, tokens, ok := parseEntryName(f.Name()); ok && rank < s.spec.Layout.Ranks() {
			found[batch{name, tokens}] = true
		} else {
			s.Entries = append(s.Entries, EntryStatus{Path: filepath.Join(s.dir, f.Name()), Status: failedPrefix +
				"want the name of an entry, such as " + entryName(plan.Names()[0], 0, AnyTokens)})
		}
	}
	if s.total == 0 {
		return nil, fmt.Errorf("cache %q holds no entries (*%s): make some with 'moebalance logits generate --cache %s'",
			s.dir, suffix, s.dir)
	}
	s.done = len(s.Entries)
	return found, nil
}

// batch scans the entries of all ranks.
func (s *scanning) batch(ctx context.Context, b batch) error {
	ranks := make([]int, s.spec.Layout.Ranks())
	for r := range ranks {
		ranks[r] = r
	}
	p, planErr := s.plan(b.plan, b.tokens)
	if planErr != nil {
		p = planned{asked: b.plan, tokens: b.tokens}
	}
	list, err := s.visit(ctx, p, ranks, func(ctx context.Context, e *entryWriter, p planned, o *Outcome) error {
		if o.Damage = planErr; planErr == nil {
			s.check(ctx, e, p, o, s.thorough)
		}
		return context.Cause(ctx)
	}, func(o Outcome) {
		if s.done++; s.each != nil && !o.New {
			s.each(min(s.done, s.total), s.total)
		}
	})
	if err != nil {
		return err
	}
	if s.spec.Mode == router.TEP {
		agree(list)
	}
	s.Balance = append(s.Balance, s.spec.balance(p, list))
	for _, o := range list {
		s.Entries = append(s.Entries, s.spec.status(p, o))
	}
	return nil
}

// check compares an entry with what is made from the manifest, or at least its size.
func (c *Cache) check(ctx context.Context, e *entryWriter, p planned, o *Outcome, thorough bool) {
	info, err := os.Stat(o.Path)
	if o.New = errors.Is(err, fs.ErrNotExist); err != nil {
		o.Damage = fmt.Errorf("entry is missing: want one for each of %d ranks, have none for rank %d", c.spec.Layout.Ranks(),
			o.Rank)
		return
	}
	o.Bytes = info.Size()
	switch content := c.spec.contentBytes(p.Rows); {
	case thorough:
		var w written
		w, o.Damage = compareEntry(ctx, e, p, o.Rank, o.Path)
		o.Feasibility = w.feasibility
	case !info.Mode().IsRegular() || o.Bytes < content:
		o.Damage = fmt.Errorf("want a regular file of %d bytes and more, have %s of %d", content, info.Mode().Type(), o.Bytes)
	default:
		o.Feasibility, o.Damage = e.assign(p, o.Rank)
	}
	if o.Damage == nil {
		o.ids = slices.Clone(e.ids)
	}
}

// agree finds the tep ranks that do not route as the first one does. Their tokens are the
// same, so no router would do that.
func agree(list []Outcome) {
	first := slices.IndexFunc(list, func(o Outcome) bool { return o.Damage == nil })
	for i, o := range list {
		if o.Damage == nil && !slices.Equal(o.ids, list[first].ids) {
			list[i].Damage = fmt.Errorf("in tep mode all ranks hold the same tokens: want them routed as on rank %d, have "+
				"another routing on rank %d", first, i)
		}
	}
}

// name is the plan's name with its version, where it could be made.
func (p planned) name() string {
	if p.Plan == nil {
		return p.asked
	}
	return p.Name()
}

// status is what the manifest and the name of an entry say, and what was found.
func (s Spec) status(p planned, o Outcome) EntryStatus {
	e := EntryStatus{Path: o.Path, Model: s.Model, Method: s.Gate.Method, Experts: s.Gate.Shape.Experts,
		TopK: s.Gate.Shape.TopK, Ranks: s.Layout.Ranks(), Rank: router.OptInt(o.Rank), TokensPerRank: router.OptInt(o.Tokens),
		DType: s.DType, Plan: p.name(), Status: o.Feasibility.Status()}
	if p.Plan != nil && o.Tokens == AnyTokens {
		e.Extent = &p.Extent
	}
	if about := new(input.Error); errors.As(o.Damage, &about) {
		e.Status = failedPrefix + about.Fault()
	} else if o.Damage != nil {
		e.Status = failedPrefix + o.Damage.Error()
	}
	return e
}

// balance is the balance of a batch, undefined while ranks are missing. Where the layers of
// a plan have tables of their own it is the first one's.
func (s Spec) balance(p planned, list []Outcome) BatchBalance {
	v := BatchBalance{
		Model: s.Model, Method: s.Gate.Method, Plan: p.name(), Mode: s.Mode, Layer: s.Layer, DType: s.DType,
		Ranks: s.Layout.Ranks(), TokensPerRank: router.OptInt(p.tokens), Drawn: plan.Drawn(p.asked),
		ExpertMaxOverMean: router.Undefined(), RankMaxOverMean: router.Undefined(), ActiveExperts: router.Undefined(),
		ExpertFloor: router.Undefined(), RankFloor: router.Undefined(),
	}
	for _, o := range list {
		if v.Bytes += o.Bytes; o.Damage != nil {
			v.MissingRanks = append(v.MissingRanks, o.Rank)
		}
		if !o.New {
			v.Entries++
		}
		v.Projected = v.Projected || o.Feasibility.ProjectedRows > 0
	}
	if p.Plan == nil || len(v.MissingRanks) > 0 {
		return v
	}
	problem, k := s.problem(p.Rows/p.Layers), s.Gate.Shape.TopK
	c, err := plan.Certify(problem, stored(list))
	if err != nil {
		panic(err) // the spec is valid, and the router picked the experts
	}
	v.ExpertMaxOverMean, v.ExpertFloor = c.Expert.MaxOverMean, c.Expert.FloorOverMean
	v.RankMaxOverMean, v.RankFloor = c.Rank.MaxOverMean, c.Rank.FloorOverMean
	v.ActiveExperts, v.ActiveExpertsIdeal = router.Number(c.ActiveExperts), c.ActiveExpertsIdeal
	if v.AtFloor = c.Rank.Excess <= 0 && c.Copy.Excess <= 0; p.tokens == AnyTokens && !v.Drawn {
		proof := plan.ProveRows(problem, p.Rows, p.Period, func(source, token int) []int32 {
			return list[source].ids[token*k:][:k]
		})
		v.Certificate, v.AtFloor = &proof, proof.Optimal()
	}
	return v
}

// stored is the plan that the entries hold.
type stored []Outcome

func (s stored) Name() string               { return s[0].Plan }
func (s stored) Fill(dst []int32, rank int) { copy(dst, s[rank].ids) }
