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

	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router/plan"
)

// Cache is a folder of entries and a spec to make more of them. Its methods may
// be called from several goroutines, and several processes may use the same
// folder at once.
type Cache struct {
	dir   string
	spec  Spec
	plans plans
	mu    sync.Mutex
	idle  []*maker // waiting for work
}

// keptPlans bounds the plans that a cache keeps for later: where ranks differ
// there is no end of batches.
const keptPlans = 64

// Open uses the folder as a cache for a spec; it is made with its first entry.
// What killed writers left behind is removed.
func Open(dir string, spec Spec) (*Cache, error) {
	spec, err := spec.withDefaults()
	if err != nil {
		return nil, err
	}
	if _, err := spec.plan(Equal(1)); err != nil {
		return nil, err
	}
	if _, err := sweep(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return &Cache{dir: dir, spec: spec, plans: plans{most: keptPlans}}, nil
}

// Spec is what the cache was opened for, its empty fields filled.
func (c *Cache) Spec() Spec { return c.spec }

// place is where an entry lies or would lie, and what it is made from.
type place struct {
	path  string
	plan  plan.Plan
	rank  int
	batch Batch
}

func (c *Cache) place(rank int, b Batch) (place, error) {
	if err := c.spec.hasRank(rank); err != nil {
		return place{}, err
	}
	plan, err := c.plans.of("", c.spec, b)
	if err != nil {
		return place{}, err
	}
	return place{filepath.Join(c.dir, address(c.spec.identify(plan.Name(), rank, b))), plan, rank, b}, nil
}

// Path is where the entry of a rank and batch lies or would lie.
func (c *Cache) Path(rank int, b Batch) (string, error) {
	p, err := c.place(rank, b)
	return p.path, err
}

// Get returns the entry of a rank and batch: read from the folder when it is
// there, made and kept when it is not. A rank without tokens has an entry too,
// of no rows. One that is there but damaged is an error that wraps ErrDamaged, so
// that a bad disk does not go unnoticed: Fill replaces it and says so.
func (c *Cache) Get(rank int, b Batch) (*Entry, error) {
	p, err := c.place(rank, b)
	if err != nil {
		return nil, err
	}
	e, err := ReadEntry(p.path)
	switch {
	case errors.Is(err, ErrDamaged):
		return nil, fmt.Errorf("%w; remove it, or let Cache.Fill ('moebalance logits generate') replace it", err)
	case !errors.Is(err, fs.ErrNotExist):
		return e, err
	}
	if _, err := c.write(p); err != nil {
		return nil, err
	}
	if err := syncDir(c.dir); err != nil {
		return nil, err
	}
	return ReadEntry(p.path)
}

// writersPerProcessor is how many entries are written at once per processor:
// most of a writer's time is waiting for its file to reach the disk.
const writersPerProcessor = 4

// Outcome is what Fill found and did about one entry.
type Outcome struct {
	Path    string
	Rank    int
	Batch   Batch
	Bytes   int64
	Finding Finding
	New     bool  // nothing was there, and it was written
	Damage  error // an ErrDamaged: why the file that was there was replaced; nil where none was
}

func (o Outcome) written() bool { return o.New || o.Damage != nil }

// Fill makes sure of the entries of the given ranks and batches: it makes them all,
// and writes those that are missing, or whose file is not byte for byte what was
// made. A file that the system cannot read, or that cannot be replaced, is an error.
// It works on several entries at once. The result is in the order of the batches,
// then of the ranks. each, when not nil, is called after every entry, from one
// goroutine at a time. Ranks that are not there and batches that they cannot hold
// are refused before anything is written.
func (c *Cache) Fill(ctx context.Context, ranks []int, batches []Batch, each func(Outcome)) ([]Outcome, error) {
	list := make([]Outcome, 0, len(ranks)*len(batches))
	for _, r := range ranks {
		if err := c.spec.hasRank(r); err != nil {
			return nil, err
		}
	}
	for _, b := range batches {
		if err := c.spec.admit(b); err != nil {
			return nil, err
		}
		for _, r := range ranks {
			list = append(list, Outcome{Rank: r, Batch: b})
		}
	}
	// The largest batches first, so that no processor is left with one at the end,
	// and one after the other, so that each is planned once.
	order := make([]int, len(batches))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return batches[j].most() - batches[i].most() })
	var report sync.Mutex
	err := parallel(ctx, writersPerProcessor, len(list), func(i int) error {
		o := &list[order[i/len(ranks)]*len(ranks)+i%len(ranks)]
		err := c.ensure(o)
		if err == nil && each != nil {
			report.Lock()
			defer report.Unlock()
			each(*o)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	// A whole cache may lie where nothing can be written or synced.
	if slices.ContainsFunc(list, Outcome.written) {
		err = syncDir(c.dir)
	}
	return list, err
}

// ensure writes an entry unless it is there.
func (c *Cache) ensure(o *Outcome) error {
	p, err := c.place(o.Rank, o.Batch)
	if err != nil {
		return err
	}
	o.Path = p.path
	m, err := c.match(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		o.New = true
		m, err = c.write(p)
	case errors.Is(err, ErrDamaged):
		o.Damage = err
		if m, err = c.write(p); err != nil {
			err = fmt.Errorf("entry %q is %w, and cannot be replaced: %w", p.path, o.Damage, err)
		}
	}
	o.Bytes, o.Finding = m.bytes, m.finding
	return err
}

// match holds the file in an entry's place against the entry.
func (c *Cache) match(at place) (m made, err error) {
	f, info, err := safetensors.OpenRegular(at.path)
	if err != nil {
		return made{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if m, err = c.make(at, newMatcher(f)); err != nil {
		return made{}, err
	}
	if info.Size() != m.bytes {
		err = fmt.Errorf("%w: want %d bytes, found %d", ErrDamaged, m.bytes, info.Size())
	}
	return m, err
}

// write makes an entry aside and puts it in its place.
func (c *Cache) write(at place) (made, error) {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return made{}, err
	}
	p, err := newPending(at.path)
	if err != nil {
		return made{}, err
	}
	m, err := c.make(at, p)
	if err != nil {
		return made{}, fmt.Errorf("writing entry %q: %w", at.path, errors.Join(err, p.discard()))
	}
	return m, p.commit()
}

// make lets an idle maker write an entry.
func (c *Cache) make(at place, w io.WriterAt) (made, error) {
	m, err := c.borrow()
	if err != nil {
		return made{}, err
	}
	defer c.giveBack(m)
	return m.make(at.plan, at.rank, at.batch, w)
}

func (c *Cache) borrow() (*maker, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.idle); n > 0 {
		m := c.idle[n-1]
		c.idle = c.idle[:n-1]
		return m, nil
	}
	return newMaker(c.spec)
}

func (c *Cache) giveBack(m *maker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = append(c.idle, m)
}

// parallel calls work for 0 to n−1 from several goroutines per processor, started
// in that order, and stops at the first error or when the context ends. Work that
// waits for the disk wants more than one.
func parallel(ctx context.Context, perProcessor, n int, work func(int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		next int
	)
	take := func() int {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1
	}
	for range min(n, perProcessor*runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := take(); i < n && ctx.Err() == nil; i = take() {
				if err := work(i); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
