package logits

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// deepSeek is the gate of DeepSeek-V3.
func deepSeek() router.Gate {
	return router.Gate{Method: router.DeepSeekV3, Scale: 2.5, Shape: router.Shape{Experts: 256, TopK: 8, Groups: 8, TopKGroups: 4}}
}

// small is a gate of 16 experts, top-2, for any method.
func small(m router.Method) router.Gate {
	return router.Gate{Method: m, Scale: 1, Shape: router.Shape{Experts: 16, TopK: 2}}
}

func specOf(t testing.TB, g router.Gate, ranks int) Spec {
	t.Helper()
	layout, err := router.Contiguous(g.Shape.Experts, ranks)
	if err != nil {
		t.Fatal(err)
	}
	return Spec{Model: "test", Gate: g, Layout: layout, Mode: router.DEP}
}

func openCache(t testing.TB, dir string, s Spec) *Cache {
	t.Helper()
	c, err := Open(dir, s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func allRanks(n int) []int {
	ranks := make([]int, n)
	for i := range ranks {
		ranks[i] = i
	}
	return ranks
}

func fill(t testing.TB, c *Cache, tokens ...int) []Written {
	t.Helper()
	list, err := c.Fill(context.Background(), allRanks(c.Spec().Layout.Ranks()), tokens, nil)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// verified checks that every entry of the folder proves and returns the survey.
func verified(t testing.TB, dir string) Survey {
	t.Helper()
	s, err := Verify(context.Background(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range s.Entries {
		if e.Err != nil {
			t.Fatalf("%s: %v", filepath.Base(e.Path), e.Err)
		}
	}
	return s
}

func names(t testing.TB, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}

func TestEveryMethodTypeAndModeRoundTrips(t *testing.T) {
	for _, method := range router.Methods() {
		for _, d := range DTypes {
			for _, mode := range []router.Mode{router.DEP, router.TEP} {
				for _, idsOnly := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s/%s/%v", method, d, mode, idsOnly), func(t *testing.T) {
						s := specOf(t, small(method), 4)
						s.DType, s.Mode, s.IDsOnly = DType(d), mode, idsOnly
						dir := t.TempDir()
						c := openCache(t, dir, s)
						fill(t, c, 0, 1, 3, 8)
						survey := verified(t, dir)
						if len(survey.Entries) != 16 || len(survey.Balances) != 4 {
							t.Fatalf("%d entries, %d balances", len(survey.Entries), len(survey.Balances))
						}
						// 4 ranks · 8 tokens · top-2 = 64 slots: 4 per expert, 16 per rank; in tep mode 16
						// slots: 1 per expert, 4 per rank.
						b := survey.Balances[3]
						if b.Experts.MaxOverMean != 1 || b.Ranks.MaxOverMean != 1 || b.Experts.Active != 16 {
							t.Errorf("8 tokens: %+v", b)
						}
						e, err := c.Get(2, 3)
						if err != nil {
							t.Fatal(err)
						}
						checkEntry(t, e, s)
					})
				}
			}
		}
	}
}

// checkEntry routes an entry the way an engine would: logits in, experts out.
func checkEntry(t *testing.T, e *Entry, s Spec) {
	t.Helper()
	k := s.Gate.Shape.TopK
	if len(e.IDs) != e.Tokens*k || (e.Logits == nil) != s.IDsOnly {
		t.Fatalf("%d ids and %d logit bytes for %d tokens", len(e.IDs), len(e.Logits), e.Tokens)
	}
	if s.IDsOnly {
		return
	}
	r, err := router.NewRouter(s.Gate)
	if err != nil {
		t.Fatal(err)
	}
	ids, weights := make([]int32, k), make([]float32, k)
	var row []float32
	for token := range e.Tokens {
		row = e.Row(row, token)
		if _, err := r.Route(row, ids, weights); err != nil {
			t.Fatal(err)
		}
		want := slices.Sorted(slices.Values(e.IDs[token*k : (token+1)*k]))
		if got := slices.Sorted(slices.Values(ids)); !slices.Equal(got, want) {
			t.Fatalf("token %d: routed to %v, the entry says %v", token, got, want)
		}
		if slices.Min(weights) != slices.Max(weights) {
			t.Fatalf("token %d: weights %v", token, weights)
		}
	}
}
