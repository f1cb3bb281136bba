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
	"github.com/moebalance/moebalance/router/plan"
	"github.com/moebalance/moebalance/router/quantity"
)

// Verification is what a scan found in a cache, and the JSON of 'logits verify'.
type Verification struct {
	SchemaVersion int            `json:"schema_version"`
	Kind          string         `json:"kind"`    // always VerificationKind
	Balance       []BatchBalance `json:"balance"` // by plan and tokens
	Entries       []Entry        `json:"entries"` // foreign files first, then by plan, tokens and rank
}

// The kind and version of Verification's JSON.
const (
	VerificationKind   = "logits verify"
	VerificationSchema = 1
)

// AtFloor is how many batch sizes of balanced plans there are, and how many of them are as
// even as can be.
func (v Verification) AtFloor() (at, of int) {
	for _, b := range v.Balance {
		if !b.Drawn {
			of++
		}
		if b.AtFloor && !b.Drawn {
			at++
		}
	}
	return at, of
}

// BatchBalance is the balance of one batch size over all ranks together; its numbers
// are undefined while entries are missing or bad.
type BatchBalance struct {
	About
	Plan string `json:"plan"` // with its version
	// TokensPerRank is null for periodic entries. Their numbers are for one
	// whole table; Certificate covers every number of tokens.
	TokensPerRank      router.OptInt `json:"tokens_per_rank"`
	ExpertMaxOverMean  router.Number `json:"expert_max_over_mean"`
	ExpertFloor        router.Number `json:"expert_floor"`
	RankMaxOverMean    router.Number `json:"rank_max_over_mean"`
	RankFloor          router.Number `json:"rank_floor"`
	ActiveExperts      router.Number `json:"active_experts"`
	ActiveExpertsIdeal int           `json:"active_experts_ideal"`
	// AtFloor reports that ranks and copies of experts are as even as whole slots
	// can be, as no slots at all are, and that no rank is missing. With replicas
	// logical experts do not count: even ranks give an expert more slots the more
	// copies it has. For periodic entries it holds for every number of tokens, and
	// for active experts too.
	AtFloor bool `json:"at_floor"`
	Drawn   bool `json:"drawn"` // its plan is not meant to be even
	// Certificate is null for entries of one batch size, for drawn ones, and while ranks
	// are missing.
	Certificate *plan.Proof `json:"certificate"`

	Projected    bool  `json:"-"`       // one of the good entries is
	MissingRanks []int `json:"-"`       // ranks without a good entry
	Entries      int   `json:"entries"` // that are there
	Bytes        int64 `json:"bytes"`   // of the entries
}

// Err is nil when every entry is what it says, and names the first that is not.
func (v Verification) Err() error {
	failed := slices.DeleteFunc(slices.Clone(v.Entries), func(e Entry) bool { return e.Fault() == "" })
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %s failed; run 'moebalance logits generate' again to replace damaged "+
		"entries and add missing ones, and remove other files; the first: %q: %s", len(failed),
		quantity.Count(len(v.Entries), "entry"), failed[0].Path, failed[0].Fault())
}

// Verify makes every entry of a cache anew and compares it with its file, byte for byte, and
// routes it by the exact method of the gate, token by token: to the experts that it promises,
// with equal weights, on all tep ranks the same. Of a batch size that lacks ranks the
// missing entries are listed too. each, when not nil, is called after every file, from one
// goroutine at a time. The error is about the folder; each entry has its own in the result.
func Verify(ctx context.Context, dir string, each func(done, total int)) (Verification, error) {
	return scan(ctx, dir, each, (*Cache).compare)
}

// List is Verify without a look into the files: their sizes alone are checked.
func List(ctx context.Context, dir string, each func(done, total int)) (Verification, error) {
	return scan(ctx, dir, each, (*Cache).measure)
}

// measure checks the size of an entry's file.
func (c *Cache) measure(_ context.Context, w *writer, p planned, e *Entry) error {
	info, err := os.Stat(e.Path)
	if err != nil {
		return err
	}
	e.Bytes = info.Size()
	if content := c.spec.contentBytes(p.Extent.Rows); !info.Mode().IsRegular() || e.Bytes < content {
		return fmt.Errorf("want a regular file of %d bytes and more, have %s of %d", content, info.Mode().Type(), e.Bytes)
	}
	return w.assign(p, e)
}

func scan(ctx context.Context, dir string, each func(done, total int),
	check func(*Cache, context.Context, *writer, planned, *Entry) error) (Verification, error) {
	v := Verification{SchemaVersion: VerificationSchema, Kind: VerificationKind, Balance: []BatchBalance{},
		Entries: []Entry{}}
	spec, text, err := readManifest(dir)
	if err != nil {
		return v, err
	}
	c := &Cache{dir: dir, spec: spec, manifest: text}
	batches, foreign, total, err := c.list()
	if err != nil {
		return v, err
	}
	v.Entries = append(v.Entries, foreign...)
	done := len(foreign)
	for _, b := range batches {
		p, planErr := c.plan(b)
		list, err := c.visit(ctx, p, func(ctx context.Context, w *writer, p planned, e *Entry) error {
			err := planErr
			if err == nil {
				err = check(c, ctx, w, p, e)
			}
			if e.New = errors.Is(err, fs.ErrNotExist) && planErr == nil; e.New {
				err = fmt.Errorf("entry is missing: want one for each of %d ranks, have none for rank %d", e.Ranks, e.Rank)
			}
			if err != nil {
				e.fail(err)
			} else {
				e.ids = slices.Clone(w.ids)
			}
			return context.Cause(ctx)
		}, func(e Entry) {
			if done++; each != nil && !e.New {
				each(min(done, total), total)
			}
		})
		if err != nil {
			return v, err
		}
		v.Balance = append(v.Balance, spec.balance(p, list))
		for _, e := range list {
			e.ids = nil
			v.Entries = append(v.Entries, e)
		}
	}
	return v, nil
}

// list finds the batches that have entries, in order, and how many files there are; a file with the
// ending of one and another name is foreign, which is a fault.
func (c *Cache) list() (batches []batch, foreign []Entry, files int, err error) {
	folder, err := os.ReadDir(c.dir)
	if err != nil {
		return nil, nil, 0, err
	}
	found := map[batch]bool{}
	for _, f := range folder {
		if f.IsDir() || strings.HasPrefix(f.Name(), ".") || !strings.HasSuffix(f.Name(), suffix) {
			continue
		}
		files++
		if b, rank, ok := parseEntryName(f.Name()); ok && rank < c.spec.Layout.Ranks() {
			found[b] = true
		} else {
			foreign = append(foreign, Entry{Path: filepath.Join(c.dir, f.Name()), Status: failedPrefix +
				"want the name of an entry, such as " + entryName(plan.Names()[0], 0, AnyTokens)})
		}
	}
	if files == 0 {
		err = fmt.Errorf("cache %q holds no entries (*%s): make some with 'moebalance logits generate --cache %s'",
			c.dir, suffix, c.dir)
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b batch) int {
		return cmp.Or(strings.Compare(a.plan, b.plan), cmp.Compare(a.tokens, b.tokens))
	}), foreign, files, err
}

// balance is the balance of a batch, undefined while ranks are missing. Where the layers of
// a plan have tables of their own it is the first one's. Ranks that route the same tokens otherwise fail.
func (s Spec) balance(p planned, list []Entry) BatchBalance {
	b := BatchBalance{About: s.about(), Plan: p.Name, TokensPerRank: router.OptInt(p.tokens), Drawn: plan.Drawn(p.plan),
		ExpertMaxOverMean: router.Undefined(), RankMaxOverMean: router.Undefined(), ActiveExperts: router.Undefined(),
		ExpertFloor: router.Undefined(), RankFloor: router.Undefined()}
	for i, e := range list {
		if s.Mode == router.TEP && e.ids != nil && list[0].ids != nil && !slices.Equal(e.ids, list[0].ids) {
			list[i].fail(fmt.Errorf(Disagree+": want them routed as on rank 0, have "+
				"another routing on rank %d", i))
		}
		if b.Bytes += e.Bytes; list[i].Fault() != "" {
			b.MissingRanks = append(b.MissingRanks, i)
		}
		if !e.New {
			b.Entries++
		}
		b.Projected = b.Projected || e.ProjectedRows > 0
	}
	if p.Fill == nil || len(b.MissingRanks) > 0 {
		return b
	}
	problem, k := s.problem(p.Extent.Rows/p.Extent.Layers), s.Gate.Shape.TopK
	c := plan.Certify(problem, plan.Plan{Fill: func(dst []int32, rank int) { copy(dst, list[rank].ids) }})
	b.ExpertMaxOverMean, b.ExpertFloor = c.Expert.MaxOverMean, c.Expert.FloorOverMean
	b.RankMaxOverMean, b.RankFloor = c.Rank.MaxOverMean, c.Rank.FloorOverMean
	b.ActiveExperts, b.ActiveExpertsIdeal = router.Number(c.ActiveExperts), c.ActiveExpertsIdeal
	if b.AtFloor = c.Rank.Excess <= 0 && c.Copy.Excess <= 0; p.tokens == AnyTokens && !b.Drawn {
		proof := plan.ProveRows(problem, p.Extent.Rows, p.Extent.Period, func(source, token int) []int32 {
			return list[source].ids[token*k:][:k]
		})
		b.Certificate, b.AtFloor = &proof, proof.Optimal()
	}
	return b
}
