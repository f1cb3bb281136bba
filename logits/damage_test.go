package logits

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router"
)

// biasedSpec has every kind of tensor: ids, a bias and logits.
func biasedSpec(t testing.TB) Spec {
	g := small(router.MiniMax2)
	g.Bias = make([]float32, 16)
	for e := range g.Bias {
		g.Bias[e] = float32(e) / 32
	}
	s := specOf(t, g, 2)
	s.DType = BFloat16
	return s
}

// oneEntry writes one entry and returns its name and bytes.
func oneEntry(t testing.TB, s Spec, rank, tokens int) (name string, content []byte) {
	t.Helper()
	c := openCache(t, t.TempDir(), s)
	e, err := c.Get(rank, tokens)
	if err != nil {
		t.Fatal(err)
	}
	path, err := c.Path(e.Rank, e.Tokens)
	if err != nil {
		t.Fatal(err)
	}
	content, err = os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Base(path), content
}

// checkBytes checks an entry given as bytes.
func (c *checker) checkBytes(name string, content []byte) error {
	f, err := safetensors.Read(name, bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return err
	}
	r, err := readRecord(f)
	if err != nil {
		return err
	}
	_, err = c.check(context.Background(), f, r)
	return err
}

func TestEveryChangedByteIsFound(t *testing.T) {
	for _, b := range []int{3, 0} {
		name, whole := oneEntry(t, biasedSpec(t), 1, b)
		c := newChecker(new(plans))
		s, w := writerOf(t, biasedSpec(t))
		plan, err := s.plan(b)
		if err != nil {
			t.Fatal(err)
		}
		match := newCompareWriter(nil)
		matches := func(content []byte) error {
			match.file = bytes.NewReader(content)
			_, err := w.write(context.Background(), plan, 1, sized(b), match)
			return err
		}
		if err := errors.Join(c.checkBytes(name, whole), matches(whole)); err != nil {
			t.Fatal(err)
		}
		for at := range whole {
			for _, flip := range []byte{1, 0x10, 0x80} {
				bad := bytes.Clone(whole)
				bad[at] ^= flip
				err := c.checkBytes(name, bad)
				if err == nil {
					t.Fatalf("%d tokens: byte %d of %d changed by %#x: nobody noticed\n%q", b, at, len(whole), flip,
						bad)
				}
				if strings.ContainsRune(err.Error(), '\n') {
					t.Fatalf("%d tokens: byte %d: more than one line: %q", b, at, err)
				}
				if err := matches(bad); !errors.Is(err, ErrDamaged) ||
					!strings.Contains(err.Error(), fmt.Sprintf(" byte %d:", at)) {
					t.Fatalf("%d tokens: byte %d of %d changed by %#x: filling says %v", b, at, len(whole), flip, err)
				}
			}
		}
	}
}

// Whatever becomes of a file, filling puts the entry back as it was and says why.
func TestFillMendsEveryDamage(t *testing.T) {
	for _, b := range []int{3, 0} {
		name, whole := oneEntry(t, biasedSpec(t), 1, b)
		_, other := oneEntry(t, biasedSpec(t), 0, b)
		c := openCache(t, t.TempDir(), biasedSpec(t))
		path := filepath.Join(c.dir, name)
		mends := func(what string, bad []byte) {
			t.Helper()
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			list, err := c.Fill(t.Context(), []int{1}, []int{b}, nil)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if o := list[0]; o.New || !errors.Is(o.Damage, ErrDamaged) || o.Bytes != int64(len(whole)) ||
				o.Feasibility.ProjectedRows > 0 || strings.ContainsRune(o.Damage.Error(), '\n') {
				t.Fatalf("%s: %+v", what, o)
			}
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, whole) {
				t.Fatalf("%s: it is not as it was (%v)", what, err)
			}
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		if list, err := c.Fill(t.Context(), []int{1}, []int{b}, nil); err != nil || list[0].New ||
			list[0].Damage != nil || list[0].Bytes != int64(len(whole)) {
			t.Fatalf("a whole one: %+v, %v", list, err)
		}
		for at := 0; at < len(whole); at += 23 {
			bad := bytes.Clone(whole)
			bad[at] ^= 1 << (at % 8)
			mends(fmt.Sprintf("%d tokens: bit %d of byte %d of %d", b, at%8, at, len(whole)), bad)
		}
		for n := 0; n < len(whole); n += 1 + n/4 {
			mends(fmt.Sprintf("%d tokens: cut at byte %d", b, n), whole[:n])
		}
		mends("a byte more", append(bytes.Clone(whole), 0))
		mends("another rank's", other)
		mends("a lie with a correct checksum", rewrite(t, whole, set("bias_spread_survived", "2")))
		mends("words", []byte("version https://git-lfs.github.com/spec/v1\n"))
		if err := newChecker(new(plans)).checkBytes(name, whole); err != nil {
			t.Fatal(err)
		}
	}
}

// An entry of several blocks is matched to its last byte.
func TestMatchingGoesOnToTheEnd(t *testing.T) {
	_, whole := oneEntry(t, specOf(t, deepSeek(), 8), 3, 300)
	if len(whole) < 2*chunkBytes {
		t.Fatalf("an entry of %d bytes, want more than two blocks", len(whole))
	}
	s, w := writerOf(t, specOf(t, deepSeek(), 8))
	plan, err := s.plan(300)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{0, chunkBytes - 1, chunkBytes, 2*chunkBytes + 1, len(whole) - 1} {
		bad := bytes.Clone(whole)
		bad[at] ^= 0x80
		want := fmt.Sprintf("damaged: byte %d: want 0x%02x, have 0x%02x", at, whole[at], bad[at])
		if _, err := w.write(context.Background(), plan, 3, sized(300),
			newCompareWriter(bytes.NewReader(bad))); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// failingDisk is a file whose sectors cannot be read from some byte on.
type failingDisk struct {
	content []byte
	good    int
}

var errSector = errors.New("input/output error")

func (d failingDisk) ReadAt(b []byte, at int64) (int, error) {
	n := copy(b, d.content[min(int(at), d.good):d.good])
	if n < len(b) {
		return n, errSector
	}
	return n, nil
}

// What cannot be read is not called damaged: nobody knows what it holds.
func TestUnreadableIsNotDamaged(t *testing.T) {
	_, whole := oneEntry(t, biasedSpec(t), 1, 3)
	s, w := writerOf(t, biasedSpec(t))
	plan, err := s.plan(3)
	if err != nil {
		t.Fatal(err)
	}
	for good := range whole {
		if _, err := w.write(context.Background(), plan, 1, sized(3),
			newCompareWriter(failingDisk{whole, good})); !errors.Is(err, errSector) || errors.Is(err, ErrDamaged) {
			t.Fatalf("unreadable from byte %d: %v", good, err)
		}
	}
	c := openCache(t, t.TempDir(), biasedSpec(t))
	path, err := c.Path(1, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Fill(t.Context(), []int{1}, []int{3}, nil); err == nil || errors.Is(err, ErrDamaged) ||
		!strings.Contains(err.Error(), path) {
		t.Errorf("a folder in its place: %v", err)
	}
}

// An engine is told of damage, and what to do about it, and gets nothing else.
func TestGetRefusesDamage(t *testing.T) {
	c := openCache(t, t.TempDir(), biasedSpec(t))
	e, err := c.Get(1, 3)
	if err != nil {
		t.Fatal(err)
	}
	path, err := c.Path(1, 3)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-1] ^= 1
	for name, bad := range map[string][]byte{"cut": whole[:len(whole)-1], "flipped": flipped, "empty": nil} {
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := c.Get(1, 3)
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "logits generate") ||
			strings.Count(err.Error(), path) != 1 {
			t.Errorf("%s: %v", name, err)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, bad) {
			t.Errorf("%s: the file was changed (%v)", name, err)
		}
	}
	if _, err := c.Fill(t.Context(), []int{1}, []int{3}, nil); err != nil {
		t.Fatal(err)
	}
	if again, err := c.Get(1, 3); err != nil || !bytes.Equal(again.Logits, e.Logits) {
		t.Errorf("after filling: %v", err)
	}
}

func TestEveryCutEntryIsTruncated(t *testing.T) {
	for _, b := range []int{2, 0} {
		name, whole := oneEntry(t, biasedSpec(t), 0, b)
		c := newChecker(new(plans))
		for n := range whole {
			if err := c.checkBytes(name, whole[:n]); !errors.Is(err, safetensors.ErrTruncated) {
				t.Fatalf("%d tokens: cut at byte %d of %d: %v", b, n, len(whole), err)
			}
		}
		if err := c.checkBytes(name, append(whole, 0)); err == nil {
			t.Fatalf("%d tokens: one byte more: no error", b)
		}
	}
}

// rewrite parses an entry, lets edit change its parts, and puts it together again
// with a correct checksum: damage that only routing and planning can find.
func rewrite(t *testing.T, content []byte, edit func(meta map[string]string, data map[string][]byte)) []byte {
	t.Helper()
	f, err := safetensors.Read("entry", bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	meta, data, crc := f.Metadata(), map[string][]byte{}, uint32(0)
	for _, tensor := range f.Tensors() {
		if data[tensor.Name], _, err = f.Bytes(tensor.Name); err != nil {
			t.Fatal(err)
		}
	}
	before := maps.Clone(data)
	edit(meta, data)
	for _, tensor := range f.Tensors() {
		if len(data[tensor.Name]) != len(before[tensor.Name]) {
			t.Fatalf("tensor %s changed its length", tensor.Name)
		}
		crc = crc32.Update(crc, castagnoli, data[tensor.Name])
	}
	meta["checksum"] = checksumText(crc)
	head, err := safetensors.Header(meta, f.Tensors())
	if err != nil {
		t.Fatal(err)
	}
	for _, tensor := range f.Tensors() {
		head = append(head, data[tensor.Name]...)
	}
	return head
}

// set is an edit of one metadata value.
func set(key, value string) func(map[string]string, map[string][]byte) {
	return func(meta map[string]string, _ map[string][]byte) { meta[key] = value }
}

func TestLiesWithACorrectChecksum(t *testing.T) {
	s := biasedSpec(t)
	name, whole := oneEntry(t, s, 1, 3)
	check := newChecker(new(plans))
	if err := check.checkBytes(name, rewrite(t, whole, func(map[string]string, map[string][]byte) {})); err != nil {
		t.Fatalf("rewritten as it was: %v", err)
	}
	for what, c := range map[string]struct {
		edit func(map[string]string, map[string][]byte)
		want string
	}{
		"another model":   {set("model", "other"), "want the name"},
		"another rank":    {set("rank", "0"), "want the name"},
		"a rank too high": {set("rank", "2"), "rank from 0 to 1"},
		"more tokens":     {set("tokens_per_rank", "4"), "want the name"},
		"another schema":  {set("schema", "moebalance.logits/1"), "schema"},
		"no schema":       {func(m map[string]string, _ map[string][]byte) { delete(m, "schema") }, "schema"},
		"another plan":    {set("plan", "diagonal/0"), "want the name"},
		"unknown planner": {set("planner", "wave"), "want the name"},
		"worse status":    {set("projected_rows", "1"), "want the feasibility"},
		"invented margin": {set("bias_spread_survived", "2"), "want the feasibility"},
		"not a number":    {set("tokens_per_rank", "three"), "whole number"},
		"negative rank":   {set("rank", "-1"), "rank from 0 to 1"},
		"too many ranks":  {set("ranks", "17"), "1 to 16"},
		"a broken layout": {set("layout", "[[0],[1]"), "experts of each rank"},
		"huge experts":    {set("experts", "2147483647"), "at most 4096"},
		"no seed":         {set("seed", "{"), "a whole number"},
		"another level":   {set("high", "33"), `"high"`},
		"expert twice": {func(_ map[string]string, d map[string][]byte) {
			copy(d[tensorIDs][4:8], d[tensorIDs][:4])
		}, "expert_ids of row 0: want"},
		"expert too high": {func(_ map[string]string, d map[string][]byte) {
			binary.LittleEndian.PutUint32(d[tensorIDs], 16)
		}, "expert_ids of row 0: want 0x09, have 0x10"},
		"negative expert": {func(_ map[string]string, d map[string][]byte) {
			binary.LittleEndian.PutUint32(d[tensorIDs], 1<<31)
		}, "expert_ids of row 0: want"},
		"tokens of each rank": {set("tokens_of_ranks", "5,3"), "no such key"},
		"tokens swapped": {func(_ map[string]string, d map[string][]byte) {
			ids := bytes.Clone(d[tensorIDs])
			copy(d[tensorIDs], ids[8:16])
			copy(d[tensorIDs][8:], ids[:8])
		}, "expert_ids of row "},
		"another background": {func(_ map[string]string, d map[string][]byte) {
			logits := d[tensorLogits] // −32 is 0xc200 in bfloat16
			at := bytes.Index(logits, []byte{0x00, 0xc2})
			logits[at] = 1
		}, "logits of row 0: want 0x00, have 0x01"},
		"another bias": {func(_ map[string]string, d map[string][]byte) {
			d[tensorBias][0]++
		}, "bias_sha256"},
	} {
		err := check.checkBytes(name, rewrite(t, whole, c.edit))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want something about %q", what, err, c.want)
		}
	}
}

// What verify says about a folder with each kind of fault in it.
func TestVerifyNamesEveryFault(t *testing.T) {
	s := specOf(t, small(router.Renormalize), 4)
	dir := t.TempDir()
	c := openCache(t, dir, s)
	fill(t, c, 1, 2, 4, 8)
	path := func(rank, tokens int) string {
		p, err := c.Path(rank, tokens)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	damage := func(p string, edit func([]byte) []byte) {
		t.Helper()
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, edit(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	damage(path(0, 1), func(b []byte) []byte { return b[:len(b)-1] })
	damage(path(1, 2), func(b []byte) []byte { b[len(b)-1] ^= 1; return b })
	if err := os.Remove(path(2, 4)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path(3, 8), path(0, 8)); err != nil { // onto another's address
		t.Fatal(err)
	}
	v, err := Verify(context.Background(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		path(0, 1): "the end of the file", path(1, 2): "have", path(2, 4): "have none for rank 2",
		path(0, 8): "have another name", path(3, 8): "have none for rank 3",
	}
	for _, e := range v.Entries {
		text, bad := want[e.Path]
		if bad != (e.Err != nil) || bad && !strings.Contains(e.Err.Error(), text) {
			t.Errorf("%s: got %v, want %q", filepath.Base(e.Path), e.Err, text)
		}
		delete(want, e.Path)
	}
	if len(want) > 0 {
		t.Errorf("not in the v: %v", want)
	}
	for _, b := range v.Balance {
		if len(b.MissingRanks) == 0 || b.ExpertMaxOverMean.Defined() || b.RankMaxOverMean.Defined() {
			t.Errorf("%d tokens: balance %v without ranks %v", b.TokensPerRank, b.ExpertMaxOverMean, b.MissingRanks)
		}
	}
	// Filling again adds what is missing, replaces what is damaged, and leaves the rest.
	for _, o := range fill(t, c, 1, 2, 4, 8) {
		missing := o.Path == path(2, 4) || o.Path == path(3, 8)
		damaged := o.Path == path(0, 1) || o.Path == path(1, 2) || o.Path == path(0, 8)
		if o.New != missing || (o.Damage != nil) != damaged {
			t.Errorf("%s: new %v, damage %v; want %v, %v", filepath.Base(o.Path), o.New, o.Damage, missing, damaged)
		}
	}
	verified(t, dir)
}

// In tep mode every rank holds the same tokens. A reference plan that starts each
// rank elsewhere routes them differently, and no load can come about from that.
func TestVerifyComparesTepRanks(t *testing.T) {
	for plan, want := range map[string]bool{"diagonal": false, "trtllm-gen2": true} {
		s := specOf(t, small(router.Renormalize), 4)
		s.Mode, s.Plan = router.TEP, plan
		dir := t.TempDir()
		fill(t, openCache(t, dir, s), 3)
		v, err := Verify(t.Context(), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		faults := 0
		for _, e := range v.Entries {
			if e.Err != nil && strings.Contains(e.Fault(), "want them routed as on rank 0") {
				faults++
			}
		}
		b := v.Balance[0]
		if split := faults > 0; split != want || b.AtFloor == want || b.RankMaxOverMean.Defined() == want {
			t.Errorf("%s: %d faults, want some: %v; at floor %v, rank max/mean %v", plan, faults, want, b.AtFloor,
				b.RankMaxOverMean)
		}
	}
}

func TestVerifyFolders(t *testing.T) {
	if _, err := Verify(context.Background(), filepath.Join(t.TempDir(), "none"), nil); !errors.Is(err,
		os.ErrNotExist) {
		t.Errorf("missing folder: %v", err)
	}
	if _, err := Verify(context.Background(), t.TempDir(), nil); err == nil ||
		!strings.Contains(err.Error(), "logits generate") {
		t.Errorf("empty folder: %v", err)
	}
	dir := t.TempDir()
	fill(t, openCache(t, dir, specOf(t, small(router.Renormalize), 2)), 1)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Verify(ctx, dir, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// claimed is the file name that an entry with such metadata has to have.
func claimed(meta map[string]string) string {
	var m metadata
	if m.read(meta, Record{}) != nil {
		return ""
	}
	return fileName(m.identity)
}

// FuzzEntry feeds the checker anything: it may refuse, and must not panic. The
// name is taken from the content, so that the fuzzer gets past it.
func FuzzEntry(f *testing.F) {
	for _, s := range []Spec{biasedSpec(f), specOf(f, deepSeek(), 8), specOf(f, small(router.Llama4), 4)} {
		_, content := oneEntry(f, s, 1, 2)
		f.Add(content)
		s.Mode = router.TEP
		_, content = oneEntry(f, s, 0, 1)
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		file, err := safetensors.Read("entry", bytes.NewReader(content), int64(len(content)))
		if err != nil {
			return
		}
		if err := newChecker(new(plans)).checkBytes(claimed(file.Metadata()), content); err != nil &&
			strings.ContainsRune(err.Error(), '\n') {
			t.Fatalf("more than one line: %q", err)
		}
	})
}
