package logits

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// variants are specs that each differ from the first in one field, by the
// field's name.
func variants(t *testing.T) map[string]Spec {
	t.Helper()
	base := specOf(t, router.Gate{Method: router.DeepSeekV3, Scale: 2, Shape: router.Shape{Experts: 16, TopK: 4,
		Groups: 4, TopKGroups: 2}, Bias: make([]float32, 16)}, 4)
	out := map[string]Spec{"base": base}
	change := func(field string, edit func(*Spec)) {
		s := base
		s.Gate.Bias = slices.Clone(base.Gate.Bias)
		edit(&s)
		out[field] = s
	}
	layout := func(ranks int) func(*Spec) {
		return func(s *Spec) {
			l, err := router.Contiguous(s.Gate.Shape.Experts, ranks)
			if err != nil {
				t.Fatal(err)
			}
			s.Layout = l
		}
	}
	change("Model", func(s *Spec) { s.Model = "test2" })
	change("Model/slug", func(s *Spec) { s.Model = "te/st" })
	change("Model/slug2", func(s *Spec) { s.Model = "te_st" })
	change("Gate.Method", func(s *Spec) { s.Gate.Method = router.MiniMax2; s.Gate.Shape.Groups = 0 })
	change("Gate.Method/2", func(s *Spec) { s.Gate.Method = router.DeepSeekV4; s.Gate.Shape.Groups = 0 })
	change("Gate.Scale", func(s *Spec) { s.Gate.Scale = 2.0000002 })
	change("Gate.Bias", func(s *Spec) { s.Gate.Bias[3] = 1e-8 })
	change("Gate.Bias/none", func(s *Spec) { s.Gate.Bias = nil })
	change("Gate.Shape.Experts", func(s *Spec) {
		s.Gate.Shape.Experts = 32
		s.Gate.Bias = make([]float32,
			32)
		layout(4)(s)
	})
	change("Gate.Shape.TopK", func(s *Spec) { s.Gate.Shape.TopK = 2 })
	change("Gate.Shape.Groups", func(s *Spec) { s.Gate.Shape.Groups = 2 })
	change("Gate.Shape.TopKGroups", func(s *Spec) { s.Gate.Shape.TopKGroups = 3 })
	change("Layout", layout(2))
	change("Layout/placed", func(s *Spec) {
		held := [][]int32{{1, 0, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}}
		l, err := router.Placed(16, held)
		if err != nil {
			t.Fatal(err)
		}
		s.Layout = l
	})
	change("Mode", func(s *Spec) { s.Mode = router.TEP })
	change("Layer", func(s *Spec) { s.Layer = 1 })
	change("Plan", func(s *Spec) { s.Plan = "uniform" })
	change("Seed", func(s *Spec) { s.Plan = "uniform"; s.Seed = 1 })
	change("DType", func(s *Spec) { s.DType = BFloat16 })
	change("DType/2", func(s *Spec) { s.DType = Float16 })
	return out
}

func TestNoTwoSpecsShareAnAddress(t *testing.T) {
	seen := map[string]string{}
	for name, s := range variants(t) {
		s, err := s.withDefaults()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, plan := range []string{"diagonal/1", "diagonal/2"} {
			for rank := range 3 {
				for _, b := range []int{1, 2, 10, 11} {
					what := fmt.Sprintf("%s %s rank %d tokens %d", name, plan, rank, b)
					at := fileName(s.identify(plan, rank, sized(b)))
					if other, taken := seen[at]; taken {
						t.Errorf("%s and %s share %s", what, other, at)
					}
					seen[at] = what
					if strings.ContainsAny(at, "/\\ ") || len(at) > 200 {
						t.Errorf("%s: bad file name %q", what, at)
					}
				}
			}
		}
	}
}

// Every exported field of a spec and of what it is made of must take part in the
// address; a new one without a variant above fails here.
func TestVariantsCoverEveryField(t *testing.T) {
	covered := variants(t)
	for prefix, kind := range map[string]reflect.Type{
		"":            reflect.TypeFor[Spec](),
		"Gate.":       reflect.TypeFor[router.Gate](),
		"Gate.Shape.": reflect.TypeFor[router.Shape](),
	} {
		for i := range kind.NumField() {
			f := kind.Field(i)
			name := prefix + f.Name
			switch {
			case !f.IsExported(), name == "Gate", name == "Gate.Shape": // opened up on their own
			default:
				if _, ok := covered[name]; !ok {
					t.Errorf("no variant changes %s", name)
				}
			}
		}
	}
}

// A model named like a path or a hidden file must not leave the folder.
func TestAddressesStayInTheFolder(t *testing.T) {
	for _, model := range []string{"../../etc/passwd", ".hidden", "..", "a b\n", "模型", strings.Repeat("x", 500)} {
		s := specOf(t, small(router.Renormalize), 2)
		s.Model = model
		s, err := s.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		at := fileName(s.identify("diagonal/1", 0, sized(1)))
		if strings.ContainsAny(at, "/\\ \n") || strings.HasPrefix(at, ".") || len(at) > 200 {
			t.Errorf("%q: file name %q", model, at)
		}
	}
}

func TestSpecsThatCannotBe(t *testing.T) {
	good := specOf(t, small(router.Renormalize), 2)
	other := specOf(t, deepSeek(), 2)
	for name, c := range map[string]struct {
		edit func(*Spec)
		want string
	}{
		"no model":        {func(s *Spec) { s.Model = "" }, "model name"},
		"element type":    {func(s *Spec) { s.DType = "float8" }, "float32, bfloat16, float16"},
		"mode":            {func(s *Spec) { s.Mode = "xep" }, "unknown mode"},
		"layout":          {func(s *Spec) { s.Layout = other.Layout }, "256 experts"},
		"layer":           {func(s *Spec) { s.Layer = -1 }, "layer 0"},
		"gate":            {func(s *Spec) { s.Gate.Shape.TopK = 17 }, "top-k"},
		"bias of another": {func(s *Spec) { s.Gate.Bias = []float32{1} }, "no correction bias"},
		"plan":            {func(s *Spec) { s.Plan = "wave" }, "unknown plan"},
		"too many":        {func(s *Spec) { s.Gate.Shape.Experts = 1 << 20 }, "at most 4096"},
		"too many ranks": {func(s *Spec) {
			*s = specOf(t, router.Gate{Method: router.Renormalize, Shape: router.Shape{Experts: 2048, TopK: 1}}, 2048)
		}, "at most 1024 ranks"},
		"too many slots": {func(s *Spec) {
			*s = specOf(t, router.Gate{Method: router.Renormalize, Shape: router.Shape{Experts: 1024, TopK: 33}}, 1024)
		}, "at most 32768 ranks × top-k, have 1024 × 33"},
	} {
		s := good
		c.edit(&s)
		if _, err := Open(t.TempDir(), s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want something about %q", name, err, c.want)
		}
	}
	c := openCache(t, t.TempDir(), good)
	for _, at := range [][2]int{{-1, 1}, {2, 1}, {0, -2}, {0, math.MaxInt}} {
		if _, err := c.Get(at[0], at[1]); err == nil {
			t.Errorf("rank %d with %d tokens: no error", at[0], at[1])
		}
	}
}

func TestContiguousIsKnownByItsContent(t *testing.T) {
	for experts := 1; experts < 20; experts++ {
		for ranks := 1; ranks <= experts; ranks++ {
			l, err := router.Contiguous(experts, ranks)
			if err != nil {
				t.Fatal(err)
			}
			held := make([][]int32, ranks)
			for r := range held {
				held[r] = slices.Clone(l.Held(r))
			}
			same, err := router.Placed(experts, held)
			if err != nil {
				t.Fatal(err)
			}
			if layoutText(l) != contiguous || layoutText(same) != contiguous {
				t.Errorf("%d experts on %d ranks: %s, %s", experts, ranks, layoutText(l), layoutText(same))
			}
			if experts == 1 {
				continue
			}
			last := held[ranks-1]
			if ranks == 1 {
				last[0], last[1] = last[1], last[0]
			} else {
				held[0][0], last[0] = last[0], held[0][0]
			}
			other, err := router.Placed(experts, held)
			if err != nil {
				t.Fatal(err)
			}
			if text := layoutText(other); text == contiguous || !strings.HasPrefix(text, "[[") {
				t.Errorf("%v: %s", held, text)
			}
		}
	}
}
