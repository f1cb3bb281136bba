package logits

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router/draft"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/plan"
)

// ErrDamaged is wrapped by the errors about files that stand in the place of an
// entry and are not that entry.
var ErrDamaged = errors.New("damaged")

// draftPrefix begins the names of files that are being written.
const draftPrefix = ".pending-"

// Cache is a folder of entries of one spec, with a manifest that says which. Several
// processes may use the same folder at once.
type Cache struct {
	dir      string
	spec     Spec
	manifest []byte
	writers  sync.Pool // of *entryWriter
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
		return f.Name() == ManifestName || strings.HasSuffix(f.Name(), suffix)
	}) {
		if err := c.match(); err != nil {
			return nil, err
		}
	}
	_, err = draft.Sweep(dir, draftPrefix)
	return c, err
}

// Spec is what the cache was opened for, its empty fields filled.
func (c *Cache) Spec() Spec { return c.spec }

// Follow keeps the counts that a recorded plan follows in the cache, where verifying finds
// them, and names the plan.
func (c *Cache) Follow(counts []byte) (name string, err error) {
	name, _, err = plan.Recorded(counts)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrSpec, err)
	}
	if err := c.keep(); err != nil {
		return "", err
	}
	return name, c.write(name+".json", func(a *draft.File) error { _, err := a.Write(counts); return err })
}

// write puts a file in the folder, whole or not at all.
func (c *Cache) write(name string, fill func(*draft.File) error) error {
	a, err := draft.New(draftPrefix, filepath.Join(c.dir, name), 0o644)
	if err != nil {
		return err
	}
	if err := fill(a); err != nil {
		return errors.Join(err, a.Discard())
	}
	return a.Commit()
}

// plan makes a plan, a recorded one from the counts beside the entries.
func (c *Cache) plan(name string, tokens int) (planned, error) {
	if !strings.HasPrefix(name, "recorded-") {
		return c.spec.plan(name, tokens, nil)
	}
	path := filepath.Join(c.dir, name+".json")
	text, err := input.ReadFile(path, maxManifest)
	if err != nil {
		return planned{}, err
	}
	of, counts, err := plan.Recorded(text)
	if err == nil && of != name {
		err = fmt.Errorf("%w: want counts of checksum %s", ErrDamaged, strings.TrimPrefix(name, "recorded-"))
	}
	if err != nil {
		return planned{}, &input.Error{File: path, Err: err}
	}
	return c.spec.plan(name, tokens, counts)
}

// Outcome is what was found and done about one entry.
type Outcome struct {
	Path        string
	Plan        string // as it was asked for
	Rank        int
	Tokens      int // of every rank; AnyTokens
	Bytes       int64
	Feasibility Feasibility
	New         bool  // nothing was there
	Damage      error // why the file that was there is not the entry; nil where none was

	ids []int32 // of the entry as it has to be
}

// Fill makes sure of the entries of a plan for the given ranks and batch sizes, in tokens per
// rank or AnyTokens: it makes them all, and writes the ones that are missing, or whose file is not
// byte for byte what was made. A file that the system cannot read, or that cannot be
// replaced, is an error. The result is in the order of the batch sizes, then of the ranks.
// each, when not nil, is called after every entry, from one goroutine at a time. Ranks that
// are not there and plans that cannot be made are refused before anything is written.
func (c *Cache) Fill(ctx context.Context, name string, ranks, tokens []int, each func(Outcome)) ([]Outcome, error) {
	var all []Outcome
	for _, r := range ranks {
		if last := c.spec.Layout.Ranks() - 1; r < 0 || r > last {
			return nil, fmt.Errorf("%w: want a rank from 0 to %d, have %d", ErrSpec, last, r)
		}
	}
	for i, t := range tokens {
		p, err := c.plan(name, t)
		if err == nil && i == 0 {
			err = c.keep()
		}
		if err != nil {
			return nil, err
		}
		list, err := c.visit(ctx, p, ranks, c.ensure, each)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// work is done on one entry, with an idle writer.
type work func(ctx context.Context, e *entryWriter, p planned, o *Outcome) error

// visit works on the entries of a plan, several at once.
func (c *Cache) visit(ctx context.Context, p planned, ranks []int, do work, each func(Outcome)) ([]Outcome, error) {
	list, report := make([]Outcome, len(ranks)), sync.Mutex{}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, rank := range ranks {
		list[i] = Outcome{Path: filepath.Join(c.dir, entryName(p.asked, rank, p.tokens)), Plan: p.asked, Rank: rank,
			Tokens: p.tokens}
		g.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			e, err := c.writer()
			if err != nil {
				return err
			}
			defer c.writers.Put(e)
			if err := do(ctx, e, p, &list[i]); err != nil {
				return err
			}
			report.Lock()
			defer report.Unlock()
			if each != nil {
				each(list[i])
			}
			return nil
		})
	}
	return list, g.Wait()
}

// ensure writes an entry unless it is there. After a power cut its length or checksum shows
// what is missing.
func (c *Cache) ensure(ctx context.Context, e *entryWriter, p planned, o *Outcome) error {
	w, err := compareEntry(ctx, e, p, o.Rank, o.Path)
	switch o.New = errors.Is(err, fs.ErrNotExist); {
	case errors.Is(err, ErrDamaged):
		o.Damage = err
	case err != nil && !o.New:
		return err
	}
	if err != nil {
		if err := c.write(filepath.Base(o.Path), func(a *draft.File) (err error) {
			w, err = e.write(ctx, p, o.Rank, a)
			return err
		}); err != nil {
			return fmt.Errorf("writing entry %q: %w", o.Path, err)
		}
	}
	o.Bytes, o.Feasibility = w.bytes, w.feasibility
	return nil
}

// writer is an idle writer, or a new one.
func (c *Cache) writer() (*entryWriter, error) {
	if e, ok := c.writers.Get().(*entryWriter); ok {
		return e, nil
	}
	return newEntryWriter(c.spec, c.manifest)
}

// compareEntry checks the file of an entry against what is written for it. It wraps ErrDamaged
// where they differ.
func compareEntry(ctx context.Context, e *entryWriter, p planned, rank int, path string) (w written, err error) {
	f, info, err := safetensors.OpenRegular(path)
	if err != nil {
		return written{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	// A file of another length is not worth the time, and its name not the memory.
	if content := e.spec.contentBytes(p.Rows); info.Size() < content || info.Size() > content+1<<16 {
		return written{}, fmt.Errorf("%w: want %d bytes and a header, have %d bytes", ErrDamaged, content, info.Size())
	}
	if w, err = e.write(ctx, p, rank, &comparer{file: f, size: info.Size()}); err == nil && info.Size() != w.bytes {
		err = fmt.Errorf("%w: want %d bytes, have %d", ErrDamaged, w.bytes, info.Size())
	}
	return w, err
}

// comparer compares what is written with a file instead of writing it.
type comparer struct {
	file *os.File
	size int64
	read []byte
}

// WriteAt reads as many bytes of the file and compares them.
func (c *comparer) WriteAt(entry []byte, at int64) (int, error) {
	c.read = slices.Grow(c.read[:0], len(entry))[:len(entry)]
	n, err := c.file.ReadAt(c.read, at)
	if !bytes.Equal(c.read[:n], entry[:n]) {
		i := 0
		for c.read[i] == entry[i] {
			i++
		}
		return i, fmt.Errorf("%w: byte %d: want 0x%02x, have 0x%02x", ErrDamaged, at+int64(i), entry[i], c.read[i])
	}
	if n < len(entry) && at+int64(n) >= c.size {
		return n, fmt.Errorf("%w: byte %d: want 0x%02x, have the end of the file", ErrDamaged, at+int64(n), entry[n])
	}
	if n == len(entry) {
		err = nil // ReadAt may say that the file ends here
	}
	return n, err
}

// Rows are the logits of a balanced batch of so many tokens, by rank: float32
// [tokens, experts], row-major.
func Rows(spec Spec, tokens int) (rows [][]float32, err error) {
	if spec, err = spec.withDefaults(); err != nil {
		return nil, err
	}
	p, err := spec.plan(plan.Names()[0], tokens, nil)
	if err != nil {
		return nil, err
	}
	e, err := newEntryWriter(spec, nil)
	if err != nil {
		return nil, err
	}
	for rank := range spec.Layout.Ranks() {
		if _, err := e.assign(p, rank); err != nil {
			return nil, err
		}
		of := slices.Repeat([]float32{e.logits.low}, tokens*spec.Gate.Shape.Experts)
		for i, id := range e.ids {
			of[i/spec.Gate.Shape.TopK*spec.Gate.Shape.Experts+int(id)] = e.logits.high
		}
		rows = append(rows, of)
	}
	return rows, nil
}
