package trace

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

func summaryOf(t testing.TB, paths ...string) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, Summarize(context.Background(), &b, paths, Options{}))
	path := filepath.Join(t.TempDir(), "summary")
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
	return path
}

func asJSON(trace *Trace) string {
	text := require.Value(json.Marshal(trace))
	return string(text)
}

// Summaries merged in any order and grouping, exports in any order, and a mix
// give the same bytes as the exports read together.
func TestMergedEqualsDirect(t *testing.T) {
	for _, folder := range []string{"gptoss-ep4-ranks", "deepseek-ep4-ranks"} {
		exports, _ := filepath.Glob(filepath.Join(testdata, folder, "normal.rank?.sqlite"))
		if len(exports) != 4 {
			t.Fatalf("want 4 exports, have %v", exports)
		}
		want := asJSON(mustRead(t, Options{Threshold: 0.1}, exports...))
		var each []string
		for _, e := range exports {
			each = append(each, summaryOf(t, e))
		}
		reversed := slices.Clone(exports)
		slices.Reverse(reversed)
		for what, paths := range map[string][]string{
			"summaries":              each,
			"in another order":       {each[2], each[0], each[3], each[1]},
			"two by two":             {summaryOf(t, exports[3], exports[0]), summaryOf(t, exports[1], exports[2])},
			"a summary of all":       {summaryOf(t, exports...)},
			"a summary of summaries": {summaryOf(t, each...)},
			"exports reversed":       reversed,
			"mixed":                  {each[1], exports[0], each[3], exports[2]},
		} {
			if got := asJSON(mustRead(t, Options{Threshold: 0.1}, paths...)); got != want {
				t.Errorf("%s, %s: not the same result", folder, what)
			}
		}
		if some := mustRead(t, Options{}, each[:2]...); len(some.Replays) > 0 {
			t.Errorf("%s: of four ranks two that may wait for another are replayed: %+v", folder, some.Replays)
		}
		if info, err := os.Stat(each[0]); err != nil || info.Size() > 40_000 {
			t.Errorf("%s: want a small summary, have %d bytes (%v)", folder, info.Size(), err)
		}
	}
	graph := filepath.Join(testdata, "gptoss-graph/graph-normal.sqlite")
	if asJSON(mustRead(t, Options{}, graph)) != asJSON(mustRead(t, Options{}, summaryOf(t, graph))) {
		t.Error("whole graphs: not the same result")
	}
}

// A summary holds nothing of the environment.
func TestSummaryIsPrivate(t *testing.T) {
	path := newFixture().work(0, 1, 10, 7, "k").environment(`SECRET="hunter2"`).environment(`RANK="0"`).write(t, "x.sqlite")
	text := require.Value(json.Marshal(require.Value(readSummary(summaryOf(t, path)))))
	if !bytes.Contains(text, []byte("environment")) || bytes.Contains(text, []byte("SECRET")) {
		t.Errorf("the summary holds the environment: %s", text)
	}
}

func TestDamagedSummary(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute under the race detector, which has no more to find here than in the other tests")
	}
	path := summaryOf(t, filepath.Join(testdata, "gptoss-graph/node-normal.sqlite"))
	content := require.Value(os.ReadFile(path))
	bad, whole := filepath.Join(t.TempDir(), "bad"), asJSON(mustRead(t, Options{}, path))
	try := func(what string, content []byte) {
		require.NoError(t, os.WriteFile(bad, content, 0o600))
		if got, err := Read(context.Background(), []string{bad}, Options{}); err == nil &&
			(what != "a flipped bit" || asJSON(got) != whole) {
			t.Errorf("%s: want an error", what)
		}
	}
	for n := 0; n < len(content); n += 1 + len(content)/211 {
		try("cut", content[:n])
		flipped := bytes.Clone(content)
		flipped[n] ^= 0x10
		// harmless in the gzip header and in the padding of blocks, whose bits nobody checks
		try("a flipped bit", flipped)
	}
	try("more behind the end", append(bytes.Clone(content), 'x'))
}

// A small file that unpacks to a large one takes no memory for it.
func TestBloatedSummary(t *testing.T) {
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	require.Value(io.WriteString(zip, summaryMagic))
	require.NoError(t, errors.Join(gob.NewEncoder(zip).Encode(bytes.Repeat([]byte(" "), 1<<26)), zip.Close()))
	path := filepath.Join(t.TempDir(), "bloated")
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := readSummary(path)
	if runtime.ReadMemStats(&after); err == nil || after.TotalAlloc-before.TotalAlloc > 1<<26 {
		t.Errorf("%d bytes: %d allocated: %v", b.Len(), after.TotalAlloc-before.TotalAlloc, err)
	}
}

// What decodes can be reduced and written again, and reads back the same.
// A summary whose bytes are whole and whose words nobody can have written is
// damaged, also for those who bring recorded load along.
func TestImpossibleSummary(t *testing.T) {
	for what, spoil := range map[string]func(*exportSummary){
		"no ranks":         func(d *exportSummary) { d.Ranks = nil },
		"rank −1":          func(d *exportSummary) { d.Ranks[0].Rank.Rank, d.Export.Ranks = -1, []int{-1} },
		"an unlisted rank": func(d *exportSummary) { d.Export.Ranks = []int{7} },
		"expert −5":        func(d *exportSummary) { d.Places.Values[0].Expert = -5 },
		"an unknown phase": func(d *exportSummary) { d.Places.Values[0].Phase = "lunch" },
		"a graph's time":   func(d *exportSummary) { d.Ranks[0].Hidden.NS = -1 },
		"a class":          func(d *exportSummary) { d.Classes[0].Phase = "lunch" },
		"too few classes":  func(d *exportSummary) { d.Classes = nil },
	} {
		found, err := summarizeAll(t.Context(), []string{newFixture().work(0, 1, 10, 7, "k").write(t, "x.sqlite")},
			Options{})
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "x.summary")
		var b bytes.Buffer
		spoil(found[0])
		require.NoError(t, errors.Join(writeSummary(&b, found), os.WriteFile(path, b.Bytes(), 0o600)))
		if _, err := Read(t.Context(), []string{path}, oneExpertRecorded()); err == nil {
			t.Errorf("%s: want an error", what)
		}
	}
}

// oneExpertRecorded is recorded load of the smallest kind.
func oneExpertRecorded() Options {
	layout, err := router.Contiguous(2, 1)
	if err != nil {
		panic(err)
	}
	return Options{Recorded: Recorded{Layers: map[int]Counted{0: {router.Load{PerExpert: []int64{1, 1}}, layout}}}}
}

func FuzzSummary(f *testing.F) {
	found, err := summarizeAll(context.Background(),
		[]string{filepath.Join(testdata, "gptoss-graph/node-normal.sqlite")}, Options{})
	if err != nil {
		f.Fatal(err)
	}
	d := found[0]
	d.Ranks[0].events = d.Ranks[0].events[:20]
	var b bytes.Buffer
	if err := writeSummary(&b, []*exportSummary{d}); err != nil {
		f.Fatal(err)
	}
	zip, err := gzip.NewReader(&b)
	if err != nil {
		f.Fatal(err)
	}
	plain, err := io.ReadAll(zip)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(plain)
	f.Add([]byte(summaryMagic))
	f.Fuzz(func(t *testing.T, plain []byte) {
		var packed bytes.Buffer
		zip := gzip.NewWriter(&packed)
		if _, err := zip.Write(plain); err != nil {
			t.Fatal(err)
		}
		require.NoError(t, zip.Close())
		exports, err := decodeSummary(&packed, 1<<28)
		if err != nil {
			return
		}
		_, _ = reduce(exports, oneExpertRecorded()) // refuses or fits, and does not panic
		trace, err := reduce(exports, Options{})
		if err != nil {
			return
		}
		var b bytes.Buffer
		require.NoError(t, writeSummary(&b, exports))
		again := require.Value(decodeSummary(&b, 1<<28))
		if second, err := reduce(again, Options{}); err != nil || asJSON(second) != asJSON(trace) {
			t.Fatalf("written and read again it is another: %v", err)
		}
	})
}
