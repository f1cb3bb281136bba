package difference

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	for name, c := range map[string]struct {
		normal, other string
		want          []string // "name: normal | other"
	}{
		"none":    {"run --batch 8", "run --batch 8", nil},
		"a value": {"run --batch 8 --log x", "run --batch 16 --log x", []string{"--batch: 8 | 16"}},
		"behind an equals sign": {"run --batch=8 x", "run --batch=16 x",
			[]string{"--batch: --batch=8 | --batch=16"}},
		"an option more": {"run a b", "run a --balanced 1 b",
			[]string{"--balanced: no such word | --balanced", "--balanced: no such word | 1"}},
		"two options": {"run --seed 1 --dtype fp8", "run --seed 2 --dtype bf16",
			[]string{"--seed: 1 | 2", "--dtype: fp8 | bf16"}},
		"another order":   {"run a b", "run b a", []string{"a: a | no such word", "a: no such word | a"}},
		"another program": {"run x", "walk x", []string{"walk: run | walk"}},
	} {
		var got []string
		for _, d := range Words(strings.Fields(c.normal), strings.Fields(c.other)) {
			got = append(got, fmt.Sprintf("%s: %s | %s", d.Name, d.Normal, d.Perfect))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
