package caveat

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

// sources is the code of all packages that leave their words to this one.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			strings.HasSuffix(filepath.Dir(path), "caveat") {
			return err
		}
		content, err := os.ReadFile(path)
		all.Write(content)
		return err
	})
	require.NoError(t, err)
	return all.String()
}

// Every code and key with words, every case of it and every value in it is one that a package has.
func TestEveryWordIsUsed(t *testing.T) {
	text := sources(t)
	has := func(word string) bool { return strings.Contains(text, `"`+word+`"`) }
	check := func(key string, names []string, words string) {
		for _, name := range names {
			if !has(name) && !has(strings.TrimPrefix(name, "counts_")) {
				t.Errorf("%s: no package has %q", key, name)
			}
		}
		for _, p := range regexp.MustCompile(`\{[=?]?(\w+)`).FindAllStringSubmatch(words, -1) {
			if !has(p[1]) && (p[0][1] != '=' || sentences[p[1]] == "") {
				t.Errorf("%s: no package has the value %q", key, p[1])
			}
		}
	}
	for key, text := range catalog {
		check(key, strings.Split(key, "."), text)
	}
	for key, l := range slices.All(slices.Concat(slices.Collect(maps.Values(readAnswers().Lines))...)) {
		key := fmt.Sprint("line ", key)
		check(key, nil, l.Text)
		for name := range strings.FieldsFuncSeq(l.Next, func(r rune) bool { return r == ' ' || r == '|' }) {
			if _, ok := readAnswers().Steps[name]; !ok {
				t.Errorf("%s: no step %q", key, name)
			}
		}
		for name := range strings.FieldsFuncSeq(l.Reasons, func(r rune) bool { return r == ' ' || r == '|' }) {
			if _, ok := sentences["why."+name]; !ok && !has(name) {
				t.Errorf("%s: no reason %q", key, name)
			}
		}
		for name := range strings.FieldsSeq(l.Numbers) {
			check(key, []string{name}, "")
		}
	}
	for key, text := range sentences {
		check(key, nil, text)
	}
	for key, words := range readAnswers().Steps {
		check(key, nil, words[0]+words[1])
	}
}

// Every code that a package emits has words, and every case in which a check does not pass.
func TestEveryCodeHasWords(t *testing.T) {
	text := sources(t)
	names := map[string]string{} // of checks, by constant
	for _, m := range regexp.MustCompile(`(Check\w+) += "(\w+)"`).FindAllStringSubmatch(text, -1) {
		names[m[1]] = m[2]
	}
	for _, m := range regexp.MustCompile(`\b[wW]arn\("(\w+)"`).FindAllStringSubmatch(text, -1) {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(catalog)), func(key string) bool {
			return key == m[1] || strings.HasPrefix(key, m[1]+".")
		}) {
			t.Errorf("code %s has no words", m[1])
		}
	}
	checks := regexp.MustCompile(`NewCheck\((?:gain\.)?(Check\w+), (?:gain\.)?(?:Warn|Fail), "(\w+)"`)
	for _, m := range checks.FindAllStringSubmatch(text, -1) {
		if key := names[m[1]] + "." + m[2]; catalog[key] == "" {
			t.Errorf("check %s has no words", key)
		}
	}
}

// The words once, and the formats of values.
func TestText(t *testing.T) {
	for want, w := range map[string]router.Warning{
		"3 of 1 launch have no kernel":                    router.Warn("lost_kernels", "", "lost", 3, "launches", 1),
		"the ranks ran different numbers of expert GEMMs": router.Warn("lost_kernels", "", "why", "steps", "steps", []int{3, 4, 5}),
		"steps 0 to 2, 7 excluded":                        router.Warn("partial_steps", "", "steps", []int{0, 1, 2, 7}),
		"20.0 % of the GPU time is of unknown phase: a, b, c and 1 more;": router.Warn(
			"unknown_kernels", "", "share", 0.2, "kernels", []string{"a", "b", "c", "d"}),
		"load changes by −9.0 % (threshold 10 %)": router.Warn("placement", "", "why", "load", "change", -0.09, "threshold",
			0.1),
		"each step is a sum over": router.Warn("counts_window", ""), // beside a trace
		"as it was":               {Code: "no_steps", Text: "as it was"},
		"no time: 3 of 9 launches have no kernel": router.Warn("no_time", "", "why", "trace", "doubt",
			"lost_kernels", "lost", 3, "launches", 9), // the words of another entry
		"the steps that count hold – of expert time (50.0 %)": router.Warn("no_experts", "", "why", "time",
			"expert_ns", router.Undefined(), "share", 0.5),
		"ranks 1 and 2 recorded different layers or steps: kernels": router.Warn("ranks_differ", "", "rank", 1, "other", 2),
		"never heard of: before":                                    router.Warn("never_heard_of", "", "why", "before", "events", 3),
	} {
		if have := Text(w); !strings.Contains(have, want) {
			t.Errorf("have %q, want %q", have, want)
		}
	}
}

// What a text lacks is a default, or left out in brackets, or said to be missing.
func TestFill(t *testing.T) {
	values := router.Warn("", "", "gain", -0.02, "n", 2, "steps", "").Args
	for text, want := range map[string]string{
		"it is {gain:speed}[ for {steps}].": "it is 2.0 % slower.", "{n:is pair} too few": "2 pairs are too few",
		"run {what|-- COMMAND}": "run -- COMMAND", "[{n} ]{steps|none}": "2 none",
	} {
		if have, whole := Fill(text, values); have != want || !whole {
			t.Errorf("%s: have %q, %v, want %q", text, have, whole, want)
		}
	}
	if have, whole := Fill("in {steps}", values); whole {
		t.Errorf("have %q, %v", have, whole)
	}
}

// Each arm excludes steps of its own; ranks that lack kernels are one caveat.
func TestGroup(t *testing.T) {
	if Group(router.Warn("start_up", "normal", "steps", []int{0})) == Group(router.Warn("start_up", "perfect", "steps",
		[]int{0, 1})) {
		t.Error("steps of two arms are one caveat")
	}
	lacks := func(rank, kernels int) router.Warning {
		return router.Warn("no_experts", "", "why", "rank", "rank", rank, "kernels", kernels)
	}
	if Group(lacks(0, 1)) != Group(lacks(3, 2)) {
		t.Error("two ranks without kernels are no one caveat")
	}
}
