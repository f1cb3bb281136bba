package logits

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/plan"
	"github.com/moebalance/moebalance/testdata/require"
)

// deepSeek is the gate of DeepSeek-V3.
func deepSeek() router.Gate {
	return router.Gate{Method: router.DeepSeekV3, Scale: 2.5, Shape: router.Shape{Experts: 256, TopK: 8, Groups: 8,
		TopKGroups: 4}}
}

// small is a gate of 16 experts, top-2, for any method.
func small(m router.Method) router.Gate {
	return router.Gate{Method: m, Scale: 1, Shape: router.Shape{Experts: 16, TopK: 2}}
}

func specOf(g router.Gate, ranks int) Spec {
	layout := require.Value(router.Contiguous(g.Shape.Experts, ranks))
	return Spec{Model: "test", Gate: g, Layout: layout, Mode: router.DEP}
}

// filled is the folder of a cache with a plan's entries for all ranks.
func filled(t testing.TB, s Spec, name string, tokens ...int) (string, []Entry) {
	t.Helper()
	dir := t.TempDir()
	return dir, fill(t, dir, s, name, tokens...)
}

func fill(t testing.TB, dir string, s Spec, name string, tokens ...int) []Entry {
	t.Helper()
	c := require.Value(Open(dir, s))
	return require.Value(c.Fill(t.Context(), name, tokens, nil))
}

// verified is what Verify finds in a cache, all of it good.
func verified(t testing.TB, dir string) Verification {
	t.Helper()
	v := scanned(t, dir, Verify)
	require.NoError(t, v.Err())
	return v
}

type scanner func(context.Context, string, func(int, int)) (Verification, error)

func scanned(t testing.TB, dir string, scan scanner) Verification {
	t.Helper()
	return require.Value(scan(t.Context(), dir, nil))
}

// read is an entry as any reader of safetensors has it: its experts, and its logits.
func read(t testing.TB, path string) (ids []int64, values []float32) {
	t.Helper()
	text := require.Value(os.ReadFile(path))
	tensors := require.Value(safetensors.Parse(path, text))
	for _, tensor := range tensors {
		raw := tensor.Data
		size := int(tensor.DType.Size())
		if tensor.Name == "expert_ids" {
			ids = make([]int64, len(raw)/size)
			require.NoError(t, safetensors.DecodeIntegers(ids, raw, tensor.DType))
			continue
		}
		for word := range slices.Chunk(raw, size) {
			values = append(values, float(word, tensor.DType))
		}
	}
	return ids, values
}

// float is a normal number, little-endian.
func float(b []byte, d safetensors.DType) float32 {
	n := uint32(b[len(b)-2]) | uint32(b[len(b)-1])<<8
	switch d {
	case safetensors.F32:
		n = n<<16 | uint32(b[0]) | uint32(b[1])<<8
	case safetensors.BF16:
		n <<= 16
	case safetensors.F16: // another bias of the exponent
		n = n&0x8000<<16 | (n&0x7fff<<13 + (127-15)<<23)
	}
	return math.Float32frombits(n)
}

// Of every method, type and mode what is written is read back by any reader, and the method
// picks the promised experts of it with equal weights.
func TestEveryMethodTypeAndMode(t *testing.T) {
	for _, method := range []router.Method{router.Default, router.Renormalize, router.RenormalizeNaive, router.DeepSeekV3,
		router.DeepSeekV4, router.Llama4, router.MiniMax2, router.SigmoidRenorm} {
		for _, d := range dtypes {
			for _, mode := range []router.Mode{router.DEP, router.TEP} {
				s := specOf(small(method), 4)
				s.DType, s.Mode = DType(d), mode
				dir, list := filled(t, s, "diagonal", AnyTokens, 3)
				r := require.Value(router.NewRouter(s.Gate))
				for _, o := range list {
					ids, values := read(t, o.Path)
					picked, weights := make([]int32, 2), make([]float32, 2)
					for row := range len(ids) / 2 {
						r.Route(values[row*16:(row+1)*16], picked, weights)
						slices.Sort(picked)
						want := []int32{int32(min(ids[2*row], ids[2*row+1])), int32(max(ids[2*row], ids[2*row+1]))}
						if !slices.Equal(picked, want) || weights[0] != weights[1] || values[16*row+int(want[0])] != high {
							t.Fatalf("%s %s %s: row %d picks %v by %v, want %v", method, d, mode, row, picked, weights, want)
						}
					}
				}
				if v := verified(t, dir); len(v.Entries) != 8 || !v.Balance[0].AtFloor || !v.Balance[0].Certificate.Optimal() {
					t.Errorf("%s %s %s: %+v", method, d, mode, v.Balance)
				}
			}
		}
	}
}

// By hand: 3 tokens of top-2 on each of 4 ranks are 24 slots, on 16 experts at most 2 each, on
// 4 ranks 6 each.
func TestBalanceByHand(t *testing.T) {
	dir, _ := filled(t, specOf(small(router.Renormalize), 4), "diagonal", 3)
	b := verified(t, dir).Balance[0]
	got := fmt.Sprint(b.ExpertMaxOverMean, b.ExpertFloor, b.RankMaxOverMean, b.RankFloor, b.ActiveExperts,
		b.ActiveExpertsIdeal)
	if want := fmt.Sprint(2/1.5, 2/1.5, 1., 1., 16, 16); got != want {
		t.Errorf("balance %s, want %s", got, want)
	}
	// The reference's first generation gives each rank the same 6 experts, 4 slots each.
	other, _ := filled(t, specOf(small(router.Renormalize), 4), "trtllm-gen1", 3)
	v := verified(t, other)
	at, of := v.AtFloor()
	if o := v.Balance[0]; !b.AtFloor || o.AtFloor || o.ActiveExperts != 6 || o.ExpertMaxOverMean != 4/1.5 ||
		at != 0 || of != 1 {
		t.Errorf("at the floor: %v, and the reference %+v", b.AtFloor, o)
	}
	alone := specOf(router.Gate{Method: router.Renormalize, Shape: router.Shape{Experts: 4, TopK: 2}}, 2)
	alone.Mode, alone.Seed = router.TEP, 1 // which draws both experts of a token on one rank
	if folder, _ := filled(t, alone, "uniform", 1); verified(t, folder).Balance[0].AtFloor {
		t.Error("ranks of 2 and 0 slots are at the floor")
	}
	rows := require.Value(Rows(specOf(small(router.Renormalize), 4), 3))
	for rank, of := range rows {
		if _, values := read(t, filepath.Join(dir, entryName("diagonal", rank, 3))); !slices.Equal(values, of) {
			t.Errorf("rank %d: other rows in memory than in its entry", rank)
		}
	}
}

// Drawn plans reach their target, and are entries as any: the same again, bit for bit.
func TestDrawnEntries(t *testing.T) {
	grouped := router.Gate{Method: router.DeepSeekV3, Shape: router.Shape{Experts: 32, TopK: 4, Groups: 8, TopKGroups: 4}}
	skewed, _ := filled(t, specOf(grouped, 8), plan.Target("1.5"), AnyTokens)
	if b := verified(t, skewed).Balance[0]; b.RankMaxOverMean < 1.48 || b.RankMaxOverMean > 1.52 || !b.Drawn {
		t.Errorf("target 1.5 gave %+v", b)
	}
	counts := []byte(`{"logical_count": [[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]]}`)
	s := specOf(small(router.Renormalize), 4)
	dir := t.TempDir()
	c := require.Value(Open(dir, s))
	file := filepath.Join(t.TempDir(), "counts.json")
	require.NoError(t, os.WriteFile(file, counts, 0o600))
	name := require.Value(c.Plan("recorded:" + file))
	fill(t, dir, s, name, AnyTokens)
	verified(t, dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, name+".json"), counts[1:], 0o600))
	if v := scanned(t, dir, Verify); v.Entries[0].Fault() == "" {
		t.Error("other counts than the entries follow are no fault")
	}
}

// What is there stays; what is damaged is replaced and named, down to the byte.
func TestFillReplacesWhatIsDamaged(t *testing.T) {
	s := specOf(small(router.Renormalize), 2)
	dir, list := filled(t, s, "diagonal", 2, 5)
	whole := map[string][]byte{}
	for i, o := range list {
		if !o.New || o.Damage != "" {
			t.Errorf("in an empty folder: %+v", o)
		}
		b, err := os.ReadFile(o.Path)
		if whole[o.Path] = b; err != nil {
			t.Fatal(err)
		}
		bad := bytes.Clone(b)
		switch i {
		case 0:
			bad[len(bad)/2] ^= 1
		case 1:
			bad = bad[:len(bad)-1]
		case 2:
			bad = append(bad, 0)
		case 3:
			bad[3] = 9 // of the header's length
		}
		require.NoError(t, os.WriteFile(o.Path, bad, 0o600))
	}
	for _, e := range scanned(t, dir, Verify).Entries {
		if !strings.Contains(e.Status, "failed: damaged: ") {
			t.Errorf("%s: %s", e.Path, e.Status)
		}
	}
	for _, o := range fill(t, dir, s, "diagonal", 2, 5) {
		if now, _ := os.ReadFile(o.Path); o.New || !strings.HasPrefix(o.Damage, "damaged: ") ||
			!bytes.Equal(now, whole[o.Path]) {
			t.Errorf("%+v", o)
		}
	}
	if o := fill(t, dir, s, "diagonal", 2)[0]; o.New || o.Damage != "" {
		t.Errorf("again: %+v", o)
	}
	verified(t, dir)
}

// Every byte counts: an entry in which any one is changed fails.
func TestVerifySeesEveryByte(t *testing.T) {
	dir, list := filled(t, specOf(small(router.MiniMax2), 1), "diagonal", 1)
	whole := require.Value(os.ReadFile(list[0].Path))
	for i := range whole {
		bad := bytes.Clone(whole)
		bad[i] ^= 4
		require.NoError(t, os.WriteFile(list[0].Path, bad, 0o600))
		if scanned(t, dir, Verify).Entries[0].Fault() == "" {
			t.Fatalf("byte %d of %d may be anything", i, len(whole))
		}
	}
}

// Ranks that lack an entry, files that are none, and names that promise too much are faults.
func TestVerifyFindsWhatIsMissingAndForeign(t *testing.T) {
	s := specOf(small(router.Renormalize), 3)
	dir, list := filled(t, s, "diagonal", 4)
	for name, text := range map[string]string{
		"other.safetensors": "x", "diagonal-rank3-4.safetensors": "x", "diagonal-rank0-16777215.safetensors": "",
		"diagonal-rank0-99999999.safetensors": "x", "sglang-gen1-rank0-4.safetensors": "x", "notes.txt": "kept",
		"target-x-rank0-any.safetensors": "x", "recorded-00000000-rank0-any.safetensors": "x", "._mac.safetensors": "x",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	require.NoError(t, os.Remove(list[1].Path))
	for _, scan := range []func(context.Context, string, func(int, int)) (Verification, error){Verify, List} {
		v := scanned(t, dir, scan)
		for _, e := range v.Entries {
			good := e.Path == list[0].Path || e.Path == list[2].Path
			if (e.Fault() == "") != good || strings.Contains(e.Path, "._mac") {
				t.Errorf("%s: %s", e.Path, e.Status)
			}
		}
		i := slices.IndexFunc(v.Balance, func(b BatchBalance) bool { return b.TokensPerRank == 4 && b.Plan == "diagonal/2" })
		beyond := func(e Entry) bool { return strings.HasSuffix(e.Path, "rank3-4.safetensors") }
		if i < 0 || !slices.ContainsFunc(v.Entries, beyond) ||
			!slices.Equal(v.Balance[i].MissingRanks, []int{1}) || v.Balance[i].RankMaxOverMean.Defined() {
			t.Errorf("%+v", v.Balance)
		}
	}
}

// A plan whose tep ranks disagree about the tokens that they share fails.
func TestVerifyComparesTEPRanks(t *testing.T) {
	s := specOf(small(router.Renormalize), 4)
	s.Mode = router.TEP
	dir, _ := filled(t, s, "trtllm-gen2", 4)
	v := scanned(t, dir, Verify)
	for rank, e := range v.Entries {
		if strings.Contains(e.Fault(), "in tep mode all ranks hold the same tokens") != (rank > 0) {
			t.Errorf("rank %d: %s", rank, e.Status)
		}
	}
}

// A cache is of one spec, and says what differs; folders without a manifest that hold entries are
// of an earlier version.
func TestManifest(t *testing.T) {
	s := specOf(deepSeek(), 8)
	dir, _ := filled(t, s, "diagonal", 1)
	if read, _, err := readManifest(dir); err != nil || read.Model != "test" || read.Gate.Scale != 2.5 ||
		read.DType != Float32 || read.Layout.Ranks() != 8 {
		t.Errorf("%+v, %v, want %+v", read, err, s)
	}
	for key, change := range map[string]func(*Spec){
		"model": func(s *Spec) { s.Model, s.DType = "other", Float16 }, "mode": func(s *Spec) { s.Mode = router.TEP },
		"dtype": func(s *Spec) { s.DType = Float16 },
		"seed":  func(s *Spec) { s.Seed = 7 },
		"ranks": func(s *Spec) { s.Layout, _ = router.Contiguous(256, 4) },
		"held": func(s *Spec) { // the first rank's alone are in another order
			held := [][]int32{}
			for r := range 8 {
				held = append(held, slices.Clone(s.Layout.Held(r)))
			}
			held[0][0], held[0][1] = 1, 0
			s.Layout = require.Value(router.Placed(256, held))
		},
	} {
		other := s
		change(&other)
		if _, err := Open(dir, other); err == nil || !strings.Contains(err.Error(), key+": want ") {
			t.Errorf("%s: %v", key, err)
		}
	}
	path := filepath.Join(dir, manifestName)
	whole := require.Value(os.ReadFile(path))
	with := func(old, new string) string { return strings.Replace(string(whole), old, new, 1) }
	for _, text := range []string{"", "[]", "{}", "null", string(whole[:40]), with("256", "999999999"),
		with(`version":4`, `version":3`), with(`"high":32`, `"high":3`), with(`"ranks":8`, `"ranks":-8`),
		with(`"held":null`, `"held":[[0]]`),
		with(`version":4`, `version": 4`) + " "} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := Verify(t.Context(), dir, nil); err == nil || !strings.Contains(err.Error(), "anew") {
			t.Errorf("%.60q: %v", text, err)
		}
		if IsCache(dir) {
			t.Errorf("%.60q makes a cache", text)
		}
	}
	require.NoError(t, os.Remove(path))
	if _, err := Open(dir, s); err == nil || !strings.Contains(err.Error(), "in a new folder") {
		t.Errorf("without a manifest: %v", err)
	}
}

// Specs and entries that cannot be are refused before anything is written.
func TestSpecsThatCannotBe(t *testing.T) {
	good := specOf(small(router.Renormalize), 4)
	for want, change := range map[string]func(*Spec){
		"want a model name": func(s *Spec) { s.Model = "" }, "unknown element type": func(s *Spec) { s.DType = "int8" },
		"unknown mode":                           func(s *Spec) { s.Mode = "pp" },
		"a layout of 16 experts for a gate of 8": func(s *Spec) { s.Gate.Shape.Experts = 8 },
		"a layout of 16 experts for a gate of 4": func(s *Spec) { s.Gate.Shape.Experts = 1 << 12 },
		"want at most 4096 experts, have 4097":   func(s *Spec) { s.Gate.Shape.Experts = 1<<12 + 1 },
		"want no correction bias": func(s *Spec) {
			s.Gate = small(router.MiniMax2)
			s.Gate.Bias = make([]float32, 16)
		},
	} {
		s := good
		change(&s)
		if _, err := Open(t.TempDir(), s); !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	dir := filepath.Join(t.TempDir(), "cache")
	c := require.Value(Open(dir, good))
	for want, of := range map[string]batch{
		"want 0 to 16777216 tokens": {"diagonal", MaxTokens + 1}, "uniform, target:RATIO or": {"sglang-gen1", 1},
		"want a number of tokens": {"uniform", AnyTokens}, "logits can carry": {"best", AnyTokens},
		"cannot have a max/mean of 5 over 4 ranks": {"target-5", AnyTokens}, "at least 1": {"target-0.5", AnyTokens},
	} {
		if _, err := c.Fill(t.Context(), of.plan, []int{of.tokens}, nil); !errors.Is(err, ErrSpec) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", of, err, want)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("refused entries left a folder")
	}
}

// A pipe in the place of an entry holds nothing up, and an interrupted
// Fill leaves whole entries alone.
func TestBadDays(t *testing.T) {
	s := specOf(small(router.Renormalize), 2)
	dir, list := filled(t, s, "diagonal", 3)
	if err := errors.Join(os.Remove(list[0].Path), syscall.Mkfifo(list[0].Path, 0o600)); err != nil {
		t.Skip(err)
	}
	for _, scan := range []func(context.Context, string, func(int, int)) (Verification, error){Verify, List} {
		if e := scanned(t, dir, scan).Entries[0]; !strings.Contains(e.Status, "want a regular file") {
			t.Errorf("%+v", e)
		}
	}
	c := require.Value(Open(dir, s))
	ctx, cancel := context.WithCancelCause(t.Context())
	broken := errors.New("broken off")
	_, err := c.Fill(ctx, "diagonal", []int{1, 2, 4, 8}, func(int, int) { cancel(broken) })
	if files, _ := os.ReadDir(dir); !errors.Is(err, broken) || len(files) < 4 || len(files) > 5 {
		t.Errorf("%v, %d files; want the manifest, the entries of 3 tokens and some of 1", err, len(files))
	}
}

// Several writers fill one folder at once.
func TestSeveralWriters(t *testing.T) {
	s := specOf(small(router.Renormalize), 4)
	dir := t.TempDir()
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() { fill(t, dir, s, "diagonal", 1, 64, AnyTokens) })
	}
	writers.Wait()
	if v := verified(t, dir); len(v.Entries) != 12 {
		t.Errorf("%d entries", len(v.Entries))
	}
}
