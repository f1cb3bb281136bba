package logits

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/draft"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/plan"
)

// errDamaged is wrapped by the errors about files that stand in the place of an
// entry and are not that entry.
var errDamaged = errors.New("damaged")

// draftPrefix begins the names of files that are being written.
const draftPrefix = ".pending-"

// Cache is a folder of entries of one spec, with a manifest that says which. Several
// processes may use the same folder at once.
type Cache struct {
	dir      string
	spec     Spec
	manifest []byte
	writers  sync.Pool // of *writer
}

// Open uses the folder as a cache for a spec, or makes it one with its first entry. A folder
// that is the cache of another spec, or that holds entries without a manifest, is refused.
// What killed writers left behind is removed.
func Open(dir string, spec Spec) (*Cache, error) {
	spec, err := spec.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Cache{dir: dir, spec: spec, manifest: spec.manifest()}
	files, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, nil
	case err != nil:
		return nil, err
	}
	if slices.ContainsFunc(files, func(f fs.DirEntry) bool {
		return f.Name() == manifestName || strings.HasSuffix(f.Name(), suffix)
	}) {
		err = c.match()
	}
	draft.Sweep(dir, draftPrefix)
	return c, err
}

// Spec is what the cache was opened for, its empty fields filled.
func (c *Cache) Spec() Spec { return c.spec }

// Plan is the name by which the cache knows a plan: diagonal is itself, target:1.20 is target-1.2, and recorded:FILE
// is named after what the file counts, which the cache follows.
func (c *Cache) Plan(text string) (name string, err error) {
	kind, value, drawn := strings.Cut(text, ":")
	switch {
	case drawn && kind == "target":
		return plan.Target(value), nil
	case text == "recorded:":
		return "", fmt.Errorf("%w: want recorded:FILE, a file of counts, have recorded: alone", ErrSpec)
	case drawn && kind == "recorded":
		counts, err := input.ReadFile(value, maxManifest)
		if err != nil {
			return "", err
		}
		if name, _, err = plan.Recorded(counts); err != nil {
			return "", &input.Error{File: value, Err: err}
		}
		if err := c.keep(); err != nil {
			return "", err
		}
		return name, c.put(name+".json", counts)
	}
	return text, nil
}

// put writes a file of the folder.
func (c *Cache) put(name string, text []byte) error {
	return draft.Write(draftPrefix, filepath.Join(c.dir, name), 0o644, func(f *os.File) error {
		_, err := f.Write(text)
		return err
	})
}

// plan makes a plan, a recorded one from the counts beside the entries.
func (c *Cache) plan(b batch) (planned, error) {
	if !strings.HasPrefix(b.plan, "recorded-") {
		return c.spec.plan(b, nil)
	}
	p, path := planned{plan.Plan{Name: b.plan}, b}, filepath.Join(c.dir, b.plan+".json")
	text, err := input.ReadFile(path, maxManifest)
	if err != nil {
		return p, err
	}
	of, counts, err := plan.Recorded(text)
	if err == nil && of != b.plan {
		err = fmt.Errorf("%w: want counts of checksum %s", errDamaged, strings.TrimPrefix(b.plan, "recorded-"))
	}
	if err != nil {
		return p, &input.Error{File: path, Err: err}
	}
	return c.spec.plan(b, counts)
}

// Fill makes sure of the entries of a plan for all ranks and the given batch sizes, in tokens per
// rank or AnyTokens: it makes them all, and writes the ones that are missing, or whose file is not
// byte for byte what was made. A file that the system cannot read, or that cannot be
// replaced, is an error. The result is in the order of the batch sizes, then of the ranks.
// each, when not nil, is called after every entry, from one goroutine at a time. Plans that
// cannot be made are refused before anything is written.
func (c *Cache) Fill(ctx context.Context, name string, tokens []int, each func(done, total int)) ([]Entry, error) {
	var all []Entry
	done := 0
	for i, t := range tokens {
		p, err := c.plan(batch{name, t})
		if err == nil && i == 0 {
			err = c.keep()
		}
		if err != nil {
			return nil, err
		}
		list, err := c.visit(ctx, p, c.ensure, func(Entry) {
			if done++; each != nil {
				each(done, len(tokens)*c.spec.Layout.Ranks())
			}
		})
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// work is done on one entry, with an idle writer.
type work func(ctx context.Context, w *writer, p planned, e *Entry) error

// visit works on the entries of a plan, several at once.
func (c *Cache) visit(ctx context.Context, p planned, do work, each func(Entry)) ([]Entry, error) {
	list, report, about := make([]Entry, c.spec.Layout.Ranks()), sync.Mutex{}, c.spec.about()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for rank := range list {
		e := &list[rank]
		*e = Entry{Path: filepath.Join(c.dir, entryName(p.plan, rank, p.tokens)), About: about, Plan: p.Name,
			Rank: router.OptInt(rank), TokensPerRank: router.OptInt(p.tokens), LargestBias: router.Undefined()}
		if p.Fill != nil && p.tokens == AnyTokens {
			e.Extent = &p.Extent
		}
		g.Go(func() (err error) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			w, idle := c.writers.Get().(*writer)
			if !idle {
				w, err = newWriter(c.spec, c.manifest)
			}
			if err == nil {
				err = do(ctx, w, p, e)
			}
			c.writers.Put(w)
			report.Lock()
			defer report.Unlock()
			if err == nil {
				each(*e)
			}
			return err
		})
	}
	return list, g.Wait()
}

// ensure writes an entry unless it is there. After a power cut its length or checksum shows
// what is missing.
func (c *Cache) ensure(ctx context.Context, w *writer, p planned, e *Entry) error {
	err := c.compare(ctx, w, p, e)
	switch e.New = errors.Is(err, fs.ErrNotExist); {
	case errors.Is(err, errDamaged):
		e.Damage = err.Error()
	case !e.New:
		return err
	}
	if err := draft.Write(draftPrefix, e.Path, 0o644, func(f *os.File) error {
		return w.write(ctx, p, e, f)
	}); err != nil {
		return fmt.Errorf("writing entry %q: %w", e.Path, err)
	}
	return nil
}

// compare checks the file of an entry against what is written for it. It wraps errDamaged
// where they differ.
func (c *Cache) compare(ctx context.Context, w *writer, p planned, e *Entry) (err error) {
	f, info, err := input.Regular(e.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	e.Bytes = info.Size()
	// A file of another length is not worth the time, and its name not the memory.
	if content := c.spec.contentBytes(p.Extent.Rows); info.Size() < content || info.Size() > content+1<<16 {
		return fmt.Errorf("%w: want %d bytes and a header, have %d bytes", errDamaged, content, info.Size())
	}
	if err = w.write(ctx, p, e, &comparer{file: f}); err == nil && info.Size() != e.Bytes {
		err = fmt.Errorf("%w: want %d bytes, have %d", errDamaged, e.Bytes, info.Size())
	}
	return err
}

// comparer compares what is written with a file instead of writing it.
type comparer struct {
	file *os.File
	read []byte
}

// WriteAt reads as many bytes of the file and compares them.
func (c *comparer) WriteAt(entry []byte, at int64) (int, error) {
	c.read = slices.Grow(c.read[:0], len(entry))[:len(entry)]
	n, err := c.file.ReadAt(c.read, at)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return n, err
	case !bytes.Equal(c.read[:n], entry):
		return 0, fmt.Errorf("%w: some of the %d bytes from %d on are others, or missing", errDamaged, len(entry), at)
	}
	return n, nil
}
