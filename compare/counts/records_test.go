package counts

import (
	"encoding/base64"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

// LMSYS published DeepSeek-R1's counts with a table of max/mean, worked out outside
// this program: contiguous experts, the mean over 58 layers, the three dense ones
// left out.
func TestPublishedCounts(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "shared", "captures", "third-party", "lmsys")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the published files are not here")
	}
	for name, want := range map[string][3]float64{
		"prefill_in4096.json":       {2.073, 3.042, 3.770},
		"decode_in2000out100.json":  {1.880, 2.633, 3.126},
		"decode_in1000out1000.json": {2.014, 2.880, 3.360},
		"prefill_in1024.json":       {1.672, 2.289, 2.903},
		"prefill_in2000out100.json": {1.855, 2.617, 3.271},
		"prefill_in512.json":        {1.547, 2.081, 2.665},
	} {
		r := mustRead(filepath.Join(dir, name))
		if !slices.Equal(codes(r.Warnings), []string{"dense_layers"}) ||
			fmt.Sprint(r.Warnings[0].Args) != "map[layers:[0 1 2]]" || r.Experts != 256 || !r.Window {
			t.Errorf("%s: %d experts, warnings %v", name, r.Experts, r.Warnings)
		}
		for i, ranks := range []int{8, 32, 64} {
			layers, _, err := r.Imbalance(Options{Ranks: ranks})
			require.NoError(t, err)
			if s := imbalance.Summarize(layers, router.LevelRank, imbalance.Load); s.Layers != 58 ||
				math.Abs(float64(s.MaxOverMean)-want[i]) > 0.0005 {
				t.Errorf("%s, EP%d: %v over %d layers, want %v over 58", name, ranks, s.MaxOverMean, s.Layers, want[i])
			}
		}
	}
}

// Prefill and decode are different workloads, each with steps of its own.
func TestPhases(t *testing.T) {
	// SGLang's dumps per token: pass 5 is prefill on both ranks, 6 decode on rank 0
	// while rank 1 is idle, 7 prefill on one and decode on the other. Rank 0 counted
	// 2 3 3 2, 1 1 1 1, 1 3 3 3 and rank 1 4 2 2 2, nothing, 0 1 1 2.
	parts := mustRead(fixture("counts", "sglang-tokens")).Phases()
	if len(parts) != 3 {
		t.Fatalf("%d parts", len(parts))
	}
	for i, want := range []step{{5, 0, []int64{6, 5, 5, 4}, []int64{11, 9}}, {6, 0, []int64{1, 1, 1, 1}, []int64{2, 2}},
		{7, 0, []int64{1, 4, 4, 5}, []int64{5, 9}}} {
		if parts[i].Phase != []Phase{Prefill, Decode, Mixed}[i] {
			t.Errorf("part %d is %q", i, parts[i].Phase)
		}
		checkSteps(t, parts[i], []step{want})
	}
}

// Padding names no expert, and a token that names one twice counts twice.
func TestRoutedPadding(t *testing.T) {
	r := parsed(`{"routed_experts": [[[0, 5]], [[1, 1]], [[-1, -1]], [[0, 0]], [[2, 3]]]}`)
	checkSteps(t, r, []step{{0, 0, []int64{1, 2, 1, 1, 0, 1}, nil}})
	if !slices.Equal(codes(r.Warnings), []string{"padded_tokens"}) || fmt.Sprint(r.Warnings[0].Args) != "map[choices:4]" {
		t.Errorf("warnings %v", r.Warnings)
	}
	// A slot of −1 in a row is padding, too.
	slot := parsed(`{"routed_experts": [[[0, -1]], [[1, 2]]]}`)
	checkSteps(t, slot, []step{{0, 0, []int64{1, 1, 1}, nil}})
	// vLLM sends base64 of a .npy: 1 token, 2 layers, top-1.
	npy := base64.StdEncoding.EncodeToString([]byte("\x93NUMPY\x01\x00\x46\x00{'descr': '<i2', 'fortran_order': False, " +
		"'shape': (1, 2, 1), } \n\x02\x00\x01\x00"))
	checkSteps(t, parsed(`{"routed_experts": "`+npy+`"}`), []step{{0, 0, []int64{0, 0, 1}, nil}, {0, 1, []int64{0, 1, 0}, nil}})
	// A model may have more experts than occur.
	layers, named, err := r.Imbalance(Options{Ranks: 2, Shape: &router.Shape{Experts: 8, TopK: 2}})
	if err != nil || layers[0].MaxOverMean != 5.0/3 || layers[1].Parts != 8 || slices.Contains(codes(named), "experts_seen") {
		t.Errorf("8 experts on 2 ranks: %+v, %v", layers, err)
	}
	_, warnings, err := r.Imbalance(Options{Ranks: 2})
	if err != nil || !slices.Contains(codes(warnings), "experts_seen") {
		t.Errorf("6 experts were seen: %v, %v", warnings, err)
	}
}

// Rows that name the same experts again and again, as in warm-up or where tokens are sorted by expert, all count.
func TestEqualTokens(t *testing.T) {
	row := `{"layer": 3, "topk_ids": [7, 4]}` + "\n"
	r := parsed(strings.Repeat(row, 2000) + `{"layer": 3, "topk_ids": [0, 1]}`)
	if load := r.ByLayer()[3].PerExpert; r.Slots() != 2*2001 || load[7] != 2000 || load[0] != 1 || len(r.Warnings) > 0 {
		t.Errorf("%v, %v", load, r.Warnings)
	}
}

func parsed(text string) *Record { return must(parse("x", []byte(text))) }

// refused checks that each text is refused in one line that says why.
func refused(t *testing.T, texts map[string]string) {
	t.Helper()
	for text, want := range texts {
		if r, err := parse("x", []byte(text)); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "x: ") {
			t.Errorf("%q: want an error with %q, have %v (%+v)", text, want, err, r)
		}
	}
}
