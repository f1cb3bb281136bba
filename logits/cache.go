package logits

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router/draft"
	"github.com/moebalance/moebalance/router/plan"
)

// Cache is a folder of entries and a spec to make more of them. Its methods may
// be called from several goroutines, and several processes may use the same
// folder at once.
type Cache struct {
	dir     string
	spec    Spec
	plans   *plans
	writers sync.Pool // of *entryWriter
}

// Open uses the folder as a cache for a spec; it is made with its first entry.
// What killed writers left behind is removed.
func Open(dir string, spec Spec) (*Cache, error) {
	spec, err := spec.withDefaults()
	if err != nil {
		return nil, err
	}
	if _, err := spec.plan(1); err != nil {
		return nil, err
	}
	if _, err := draft.Sweep(dir, draftPrefix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return &Cache{dir: dir, spec: spec, plans: new(plans)}, nil
}

// Spec is what the cache was opened for, its empty fields filled.
func (c *Cache) Spec() Spec { return c.spec }

// target is where an entry is or would be, and what it is made from.
type target struct {
	path string
	plan plan.Plan
	rank int
	extent
}

func (c *Cache) target(rank, tokens int) (target, error) {
	if err := c.spec.checkEntry(rank, tokens); err != nil {
		return target{}, err
	}
	p, err := c.plans.of("", c.spec, tokens)
	if err != nil {
		return target{}, err
	}
	x := c.spec.extent(p, tokens)
	return target{filepath.Join(c.dir, fileName(c.spec.identify(p.Name(), rank, x))), p, rank, x}, nil
}

// Get returns the entry of a rank for so many tokens on every rank, or the periodic
// one for AnyTokens: read from the
// folder when it is there, made and kept when it is not. One that is there but
// damaged is an error that wraps ErrDamaged, so that a bad disk does not go
// unnoticed: Fill replaces it and says so.
func (c *Cache) Get(rank, tokens int) (*Entry, error) {
	t, err := c.target(rank, tokens)
	if err != nil {
		return nil, err
	}
	e, err := ReadEntry(t.path)
	switch {
	case errors.Is(err, ErrDamaged):
		return nil, fmt.Errorf("%w; remove it, or let Cache.Fill ('moebalance logits generate') replace it", err)
	case !errors.Is(err, fs.ErrNotExist):
		return e, err
	}
	if _, err := c.write(context.Background(), t); err != nil {
		return nil, err
	}
	return ReadEntry(t.path)
}

// Outcome is what Fill found and did about one entry.
type Outcome struct {
	Path        string
	Rank        int
	Tokens      int // of every rank; AnyTokens
	Bytes       int64
	Feasibility Feasibility
	New         bool  // nothing was there, and it was written
	Damage      error // an ErrDamaged: why the file that was there was replaced; nil where none was
}

// Fill makes sure of the entries of the given ranks and batch sizes, in tokens per
// rank or AnyTokens: it makes them all, and writes those that are missing, or whose file is not
// byte for byte what was made. A file that the system cannot read, or that cannot be
// replaced, is an error. It works on several entries at once. The result is in the
// order of the batch sizes, then of the ranks. each, when not nil, is called after
// every entry, from one goroutine at a time. Ranks that are not there and numbers of
// tokens that they cannot hold are refused before anything is written.
func (c *Cache) Fill(ctx context.Context, ranks, tokens []int, each func(Outcome)) ([]Outcome, error) {
	list := make([]Outcome, 0, len(ranks)*len(tokens))
	for _, t := range tokens {
		for _, r := range ranks {
			if err := c.spec.checkEntry(r, t); err != nil {
				return nil, err
			}
			list = append(list, Outcome{Rank: r, Tokens: t})
		}
	}
	// The largest batches first, so that no processor is left with one at the end,
	// and one after the other, so that each is planned once.
	order := make([]*Outcome, len(list))
	for i := range list {
		order[i] = &list[i]
	}
	slices.SortStableFunc(order, func(a, b *Outcome) int { return b.Tokens - a.Tokens })
	var report sync.Mutex
	err := forEach(ctx, runtime.GOMAXPROCS(0), len(order), func(ctx context.Context, i int) error {
		err := c.ensure(ctx, order[i])
		if err == nil && each != nil {
			report.Lock()
			defer report.Unlock()
			each(*order[i])
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// ensure writes an entry unless it is there.
func (c *Cache) ensure(ctx context.Context, o *Outcome) error {
	t, err := c.target(o.Rank, o.Tokens)
	if err != nil {
		return err
	}
	o.Path = t.path
	w, err := c.compare(ctx, t)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		o.New = true
		w, err = c.write(ctx, t)
	case errors.Is(err, ErrDamaged):
		o.Damage = err
		if w, err = c.write(ctx, t); err != nil {
			err = fmt.Errorf("entry %q is %w, and cannot be replaced: %w", t.path, o.Damage, err)
		}
	}
	o.Bytes, o.Feasibility = w.bytes, w.feasibility
	return err
}

// compare checks the file of an entry against what would be written.
func (c *Cache) compare(ctx context.Context, t target) (w written, err error) {
	f, info, err := safetensors.OpenRegular(t.path)
	if err != nil {
		return written{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if w, err = c.writeTo(ctx, t, newCompareWriter(f)); err != nil {
		return written{}, err
	}
	if info.Size() != w.bytes {
		err = fmt.Errorf("%w: want %d bytes, have %d", ErrDamaged, w.bytes, info.Size())
	}
	return w, err
}

// draftPrefix begins the names of entries that are being written.
const draftPrefix = ".pending-"

// write makes an entry aside and puts it in its place. After a power cut its length or
// checksum shows what is missing.
func (c *Cache) write(ctx context.Context, t target) (written, error) {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return written{}, err
	}
	a, err := draft.New(draftPrefix, t.path, 0o644)
	if err != nil {
		return written{}, err
	}
	w, err := c.writeTo(ctx, t, a)
	if err != nil {
		return written{}, fmt.Errorf("writing entry %q: %w", t.path, errors.Join(err, a.Discard()))
	}
	return w, a.Commit()
}

// writeTo lets an idle writer write an entry.
func (c *Cache) writeTo(ctx context.Context, t target, to io.WriterAt) (written, error) {
	e, ok := c.writers.Get().(*entryWriter)
	if !ok {
		var err error
		if e, err = newEntryWriter(c.spec); err != nil {
			return written{}, err
		}
	}
	defer c.writers.Put(e)
	return e.write(ctx, t.plan, t.rank, t.extent, to)
}

// forEach calls work for 0 to n−1, started in that order, as many at once as there
// are workers. The first error cancels the rest.
func forEach(ctx context.Context, workers, n int, work func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for i := range n {
		g.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return work(ctx, i)
		})
	}
	return g.Wait()
}
