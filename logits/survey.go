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

	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/plan"
)

// Survey is what a folder of entries holds.
type Survey struct {
	Entries []EntrySurvey // by name
	Batches []BatchSurvey // by model, plan, element type and layer, then in the order of batches
}

// EntrySurvey is what a survey found of one entry.
type EntrySurvey struct {
	Path   string
	Bytes  int64
	Record *Record // nil when the file could not be read so far
	Err    error   // why the entry is not what it says, or not there
}

// BatchSurvey is what a survey found of one batch: its entries, and its balance
// over all ranks together.
type BatchSurvey struct {
	Spec         Spec
	PlanName     string // as in Record
	Batch        Batch
	Experts      router.Balance
	Copies       router.Balance // of experts; as Experts without replicas
	Ranks        router.Balance
	Floors       plan.Floors
	ActiveIdeal  int    // the most experts that the slots can touch: min(E, slots)
	Worst        Status // of the good entries
	MissingRanks []int  // ranks without a good entry; the balance is then undefined
	Entries      int    // that are there
	Bytes        int64  // of them
}

// AtFloor reports that ranks and copies of experts are as even as can be, as no
// tokens at all are, and no rank is missing. With replicas logical experts do not
// count: even ranks give an expert more slots the more copies it has.
func (b BatchSurvey) AtFloor() bool {
	above := b.Ranks.MaxOverMean > b.Floors.Rank || b.Copies.MaxOverMean > b.Floors.Copy
	return len(b.MissingRanks) == 0 && !above
}

// ErrMissing is wrapped by the errors of entries that a survey expected.
var ErrMissing = errors.New("entry is missing")

// Verify proves every entry of a folder: whole, undamaged, under the name its
// content has, made by the plan it names, and routed by the exact method of its
// gate, token by token, to the experts it promises with equal weights, on all tep
// ranks the same. A batch that lacks ranks gets an entry that says so, also for a
// rank without tokens. each, when not nil, is called after every file, from one
// goroutine at a time. The error is about the folder; those of entries are in the
// survey.
func Verify(ctx context.Context, dir string, each func(done, total int)) (Survey, error) {
	return survey(ctx, dir, each, (*checker).check)
}

// List reads the records and experts of a folder's entries, but no logits, and
// proves nothing beyond their form.
func List(ctx context.Context, dir string, each func(done, total int)) (Survey, error) {
	return survey(ctx, dir, each, func(c *checker, f *safetensors.File, r Record) ([]int32, error) {
		_, err := c.readIDs(f, r)
		return c.stored, err
	})
}

// look reads the experts of an opened entry and what else it has to. They are
// valid until its checker looks again.
type look func(*checker, *safetensors.File, Record) (ids []int32, err error)

func survey(ctx context.Context, dir string, each func(done, total int), see look) (Survey, error) {
	files, err := entryFiles(dir)
	if err != nil {
		return Survey{}, err
	}
	s := Survey{Entries: make([]EntrySurvey, len(files))}
	sum := gatherer{groups: map[string]*group{}, specs: map[string]Spec{}}
	known := new(plans)
	checkers := sync.Pool{New: func() any { return newChecker(known) }}
	done := 0
	err = parallel(ctx, 1, len(files), func(i int) error {
		c := checkers.Get().(*checker)
		defer checkers.Put(c)
		e, ids := open(filepath.Join(dir, files[i]), c, see)
		s.Entries[i] = e
		sum.mu.Lock()
		defer sum.mu.Unlock()
		sum.add(i, e, ids)
		done++
		if each != nil {
			each(done, len(files))
		}
		return nil
	})
	if err != nil {
		return Survey{}, err
	}
	batches, missing := sum.finish(dir, s.Entries)
	return Survey{Entries: append(s.Entries, missing...), Batches: batches}, nil
}

// entryFiles lists the files of a folder that are entries or pretend to be, by
// name. Temporaries of writers at work are passed over.
func entryFiles(dir string) ([]string, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("no folder of entries at %q: make one with 'moebalance logits generate --cache': %w", dir, err)
	}
	var files []string
	for _, e := range list {
		if !e.IsDir() && strings.HasSuffix(e.Name(), suffix) && !strings.HasPrefix(e.Name(), ".") {
			files = append(files, e.Name())
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("folder %q holds no entries (*%s): make some with 'moebalance logits generate --cache %s'", dir, suffix, dir)
	}
	return files, nil
}

// open surveys one entry. Its ids are valid as long as look says.
func open(path string, c *checker, see look) (e EntrySurvey, ids []int32) {
	e.Path = path
	f, err := safetensors.Open(path)
	if err != nil {
		if info, statErr := os.Stat(path); statErr == nil {
			e.Bytes = info.Size()
		}
		e.Err = err
		return e, nil
	}
	defer func() { e.Err = errors.Join(e.Err, f.Close()) }()
	e.Bytes = f.Size()
	r, err := readRecord(f)
	if err != nil {
		e.Err = err
		return e, nil
	}
	e.Record = &r
	ids, e.Err = see(c, f, r)
	return e, ids
}

// group gathers the entries of one batch.
type group struct {
	BatchSurvey
	family string
	load   router.Load
	good   []bool // by rank: its entry is there and good
	// In tep mode every rank holds all tokens, and must send them the same way.
	routes []uint64 // by rank, of the good: a digest of its experts
	entry  []int    // by rank, of the good: the number of its entry
}

type gatherer struct {
	mu     sync.Mutex
	groups map[string]*group
	specs  map[string]Spec // by family
}

// add takes entry number i into its group's load. In tep mode all ranks hold the
// same tokens, which count once. The record is given the spec and batch that others
// like it have, so that a thousand of them share one layout.
func (g *gatherer) add(i int, e EntrySurvey, ids []int32) {
	if e.Record == nil {
		return
	}
	family := e.Record.family()
	if spec, ok := g.specs[family]; ok {
		e.Record.Spec = spec
	} else {
		g.specs[family] = e.Record.Spec
	}
	r := e.Record
	key := fmt.Sprintf("%s t%s", family, r.Batch)
	b := g.groups[key]
	if b == nil {
		b = &group{
			BatchSurvey: BatchSurvey{Spec: r.Spec, PlanName: r.PlanName, Batch: r.Batch, Worst: Exact},
			family:      family,
			load:        router.NewLoad(r.Spec.Gate.Shape.Experts),
			good:        make([]bool, r.Spec.Layout.Ranks()),
			routes:      make([]uint64, r.Spec.Layout.Ranks()),
			entry:       make([]int, r.Spec.Layout.Ranks()),
		}
		g.groups[key] = b
	}
	r.Batch = b.Batch
	b.Bytes += e.Bytes
	b.Entries++
	if e.Err != nil {
		return
	}
	if r.Spec.Mode == router.DEP || !slices.Contains(b.good, true) {
		b.load.Add(ids)
	}
	b.good[r.Rank], b.routes[r.Rank], b.entry[r.Rank] = true, digest(ids), i
	b.Worst = b.Worst.Worse(r.Finding.Status)
}

// finish turns the groups into batches and names the entries that are missing.
func (g *gatherer) finish(dir string, there []EntrySurvey) (batches []BatchSurvey, missing []EntrySurvey) {
	paths := make(map[string]bool, len(there))
	for _, e := range there {
		paths[e.Path] = true
	}
	groups := slices.SortedFunc(maps.Values(g.groups), func(a, b *group) int {
		return cmp.Or(
			cmp.Compare(a.Spec.Model, b.Spec.Model), cmp.Compare(a.Spec.Plan, b.Spec.Plan),
			cmp.Compare(a.Spec.DType, b.Spec.DType), cmp.Compare(a.Spec.Layer, b.Spec.Layer), cmp.Compare(a.family, b.family), a.Batch.compare(b.Batch))
	})
	for _, b := range groups {
		b.compareRoutes(there)
		for rank, good := range b.good {
			if good {
				continue
			}
			b.MissingRanks = append(b.MissingRanks, rank)
			path := filepath.Join(dir, address(b.Spec.identify(b.PlanName, rank, b.Batch)))
			if !paths[path] {
				r := &Record{Spec: b.Spec, PlanName: b.PlanName, Rank: rank, Batch: b.Batch}
				missing = append(missing, EntrySurvey{Path: path, Record: r, Err: fmt.Errorf("%w: want one for each of %d ranks, found none for rank %d", ErrMissing, len(b.good), rank)})
			}
		}
		b.weigh()
		batches = append(batches, b.BatchSurvey)
	}
	return batches, missing
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

// compareRoutes finds the tep ranks that do not route as the first one does. The
// tokens are the same ones on all of them, so no router would do that: such a plan
// has no load that could come about.
func (b *group) compareRoutes(entries []EntrySurvey) {
	first := slices.Index(b.good, true)
	if b.Spec.Mode != router.TEP || first < 0 {
		return
	}
	for rank := first + 1; rank < len(b.good); rank++ {
		if b.good[rank] && b.routes[rank] != b.routes[first] {
			b.good[rank] = false
			entries[b.entry[rank]].Err = fmt.Errorf("in tep mode all ranks hold the same tokens: want them routed as on rank %d, found rank %d route them in another way", first, rank)
		}
	}
}

// weigh computes the balance, which stays undefined while ranks are missing.
func (b *group) weigh() {
	layout, problem := b.Spec.Layout, b.Spec.problem(b.Batch)
	tokens := problem.Tokens
	if problem.Mode == router.TEP {
		tokens = tokens[:1] // the others are the same ones
	}
	slots := 0
	for _, t := range tokens {
		slots += t * problem.Shape.TopK
	}
	b.Floors = problem.Floors()
	b.ActiveIdeal = min(problem.Shape.Experts, slots)
	none := router.BalanceOf[int64](nil)
	b.Experts, b.Copies, b.Ranks = none, none, none
	if len(b.MissingRanks) == 0 {
		b.Experts, b.Copies, b.Ranks = b.load.Experts(), b.load.Copies(layout), b.load.Ranks(layout)
	}
}
