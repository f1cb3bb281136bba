package caveat

import (
	"cmp"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router"
)

var folders = []string{"capture", "nsys", "counts", "source", "place", "imbalance", "diff", "gain"}

// sources are those of the packages that leave their words to the catalog.
func sources(t *testing.T, folders ...string) string {
	var all strings.Builder
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join("../..", folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			all.Write(continued.ReplaceAll(content, []byte("$1 "))) // one statement, one line
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

var (
	continued = regexp.MustCompile(`([,(+&|])\n\s*`)
	constant  = regexp.MustCompile(`(?m)^\s*(?:const (?:\( )?)?(\w+)(?: \w+)? += ("\w+")`)
	finding   = regexp.MustCompile(`(?:NewCheck|checked)\((?:gain\.)?("?\w+"?), (?:gain\.)?\w+, ("\w+")(.*)`)
	passed    = regexp.MustCompile(`passOrWarn\(("?\w+"?), (.*)`)
	because   = regexp.MustCompile(`\b(because|Refuse|noTime)\("(\w+)"(.*)`)
	refusal   = regexp.MustCompile(`\.(refuse|judge)\((?:w, |.*\), )?"(\w+)"(.*)`)
	warns     = regexp.MustCompile(`(?:\.warn|router\.Warn|unknownLayers|\bwarn)\((?:r, |s, )?("?\w+"?)(.*)`)
	row       = regexp.MustCompile(`\{("\w+"), t\.\w+\}`)
	reason    = regexp.MustCompile(`"why", "(\w+)"`)
)

// computed are the cases that are no literals where a package warns of them.
var computed = []string{
	"counts_contradict.even_time", "counts_contradict.even_load", "counts_contradict.other_rank",
	"ranks_differ.ranges", "ranks_differ.when", "ranks_differ.stages", "ranks_differ.layers", "ranks_differ.steps", "ranks_differ.blocks",
	"partial_steps", "lost_kernels.steps", "other_kind", "start_up", "unequal_ranks.ranks", "unequal_layers.layers",
	"proof_to_come.acknowledged", "proof_to_come.counts", "proof_to_come.traces", "proof_to_come.line",
	"proof_to_come.line_of_ranks", "proof_to_come.none", "no_expert_gemm", "few_blocks", "few_layers", "nothing_once_a_step", "several_periods", "marks_elsewhere", "many_layers",
	"few_whole_steps", "unlike_steps", "parts_of_steps", "little_in_steps", "backward_kernels", "no_attention", "dense_between",
	"overlapping_microbatches", "shared_experts", "uneven_gaps", // of package infer
	"unequal_layers.outside", "kind_not_comparable.work", "kind_not_comparable.other",
}

// Every code that a package warns of has words, and the words have no value that the
// warning lacks.
func TestEveryWarningIsWorded(t *testing.T) {
	text, constants := sources(t, folders...), map[string]string{}
	for _, c := range constant.FindAllStringSubmatch(text, -1) {
		constants[c[1]] = c[2]
	}
	found := warns.FindAllStringSubmatch(text, -1)
	for _, r := range row.FindAllStringSubmatch(text, -1) {
		found = append(found, []string{r[0], r[1], `"rows"`})
	}
	for _, r := range refusal.FindAllStringSubmatch(text, -1) {
		if r[1] == "judge" {
			r[3] += `"arm" "other" "here" "there"`
		}
		found = append(found, []string{r[0], "refused", `"why", "` + r[2] + `" ` + r[3]})
	}
	for _, r := range because.FindAllStringSubmatch(text, -1) {
		code := map[string]string{"because": "placement", "Refuse": "no_prediction", "noTime": "no_time"}[r[1]]
		found = append(found, []string{r[0], `"` + code + `"`, `"why", "` + r[2] + `" ` + r[3]})
	}
	seen := 0
	for _, w := range found {
		code := strings.Trim(w[1], `"`)
		if code == w[1] {
			if code = strings.Trim(constants[code], `"`); code == "" {
				continue // a parameter
			}
		}
		if seen++; strings.Contains(w[2], "args...") || strings.Contains(w[2], "append(args") || strings.Contains(w[2], `"why", reason`) {
			continue // computed
		}
		key := code
		if why := reason.FindStringSubmatch(w[2]); why != nil {
			key += "." + why[1]
		}
		e, ok := catalog[key]
		if !ok {
			t.Errorf("%s has no words: %s", key, w[0])
		}
		for _, p := range placeholder.FindAllStringSubmatch(e.text+e.brief, -1) {
			if p[1] != "steps" && !strings.Contains(w[2], `"`+p[1]+`"`) { // steps: imbalance.Times.Warnings adds them to all
				t.Errorf("%s lacks the value %s: %s", key, p[1], w[0])
			}
		}
	}
	for _, key := range computed {
		if _, ok := catalog[key]; !ok {
			t.Errorf("%s has no words", key)
		}
	}
	if seen < 70 {
		t.Errorf("found %d warnings only", seen)
	}
}

// Every case of a check of campaigns has words, without a value that it lacks; and no other has.
func TestEveryCheckIsWorded(t *testing.T) {
	text, names := sources(t, "gain", "diff", "bench", "source"), map[string]string{}
	seen := map[string]bool{"equal_compute.other": true, "equal_compute.steps": true} // which are no literals
	for _, c := range constant.FindAllStringSubmatch(text, -1) {
		names[c[1]] = strings.Trim(c[2], `"`)
	}
	for line := range strings.Lines(text) {
		if c := constant.FindStringSubmatch(line); c != nil {
			names[c[1]] = strings.Trim(c[2], `"`) // of a function
		}
		found := finding.FindAllStringSubmatch(line, -1)
		for _, p := range passed.FindAllStringSubmatch(line, -1) {
			found = append(found, []string{p[0], p[1], "pass", p[2]}, []string{p[0], p[1], "warn", p[2]})
		}
		for _, f := range found {
			key := cmp.Or(names[f[1]], strings.Trim(f[1], `"`)) + "." + strings.Trim(f[2], `"`)
			if f[3] == ", args...)" {
				continue // passOrWarn, whose callers have the name
			}
			words, ok := checks[key]
			if seen[key] = true; !ok {
				t.Errorf("%s has no words: %s", key, f[0])
			}
			for _, p := range placeholder.FindAllStringSubmatch(words, -1) {
				if !strings.Contains(f[3], `"`+p[1]+`"`) {
					t.Errorf("%s lacks the value %s: %s", key, p[1], f[0])
				}
			}
		}
	}
	for _, key := range slices.Collect(maps.Keys(seen)) {
		name, _, _ := strings.Cut(key, ".")
		seen[name] = true // which has a label
	}
	for key := range checks {
		if !seen[key] && !strings.HasPrefix(key, "balance_") {
			t.Errorf("%s is no case of a check", key)
		}
	}
}

// Every code with words, every case of it and every value in it is one that a package has.
func TestEveryWordIsUsed(t *testing.T) {
	text := sources(t, append(folders, "bench")...)
	for key, e := range catalog {
		code, why, cases := strings.Cut(key, ".")
		used := []string{strings.TrimPrefix(code, "counts_")}
		if strings.Contains(text, `"`+code+`"`) {
			used[0] = code
		}
		if cases {
			used = append(used, why)
		}
		for _, p := range placeholder.FindAllStringSubmatch(e.text+e.brief, -1) {
			used = append(used, p[1])
		}
		for _, word := range used {
			if !strings.Contains(text, `"`+word+`"`) {
				t.Errorf("%s: no package has %q", key, word)
			}
		}
	}
}

// The words once, and the formats of values.
func TestText(t *testing.T) {
	for want, w := range map[string]router.Warning{
		"1 of 2 kernels (5.00 ns) in ranges that ask to be ignored: excluded":      router.Warn("ignored", "", "ignored", 1, "kernels", int64(2), "time_ns", 5),
		"3 of 1 launch have no kernel: it was lost; record a shorter capture, and": router.Warn("lost_kernels", "", "lost", 3, "launches", 1),
		"steps 0 to 2, 7 excluded as incomplete":                                   router.Warn("partial_steps", "", "steps", []int{0, 1, 2, 7}),
		"20.0 % of the GPU time is in kernels whose phase neither a range nor their name tells: a, b, c and 1 more;": router.Warn(
			"unknown_kernels", "", "share", 0.2, "kernels", []string{"a", "b", "c", "d"}),
		"steps are unknown: too few MoE layers for two steps; expert": router.Warn("blocks", "", "reason", "few_layers"),
		"by −9.0 % on other counts (threshold 10 %)":                  router.Warn("placement", "", "why", "load", "change", -0.09, "threshold", 0.1),
		"the recorded counts are all zero":                            router.Warn("counts_layers", "", "why", "zero"),
		"each step is a sum over":                                     router.Warn("counts_window", ""), // beside a trace
		"as it was":                                                   {Code: "no_steps", Text: "as it was"},
		"is at −2000 (vLLM issue 57883)":                              router.Warn("eplb_not_running", "", "why", "overdue", "model", "m", "left", -2000),
		"from the trace: 3 of 9 launches have no kernel": router.Warn("no_time", "", "why", "trace", "doubt",
			"lost_kernels", "lost", 3, "launches", 9), // the words of another entry
		"hold – of expert time, 50.0 %": router.Warn("little_evidence", "", "why", "time", "expert_ns", router.Undefined(), "share", 0.5),
	} {
		if have := Text(w); !strings.Contains(have, want) {
			t.Errorf("have %q, want %q", have, want)
		}
	}
}

// Few words for a case, for a check, and for a code that speaks for itself.
func TestLabel(t *testing.T) {
	for want, w := range map[string]router.Warning{
		"only 2 of the run's 4 ranks were given": router.Warn("missing_ranks", "", "given", 2, "world", 4),
		"counts are sums over passes":            router.Warn("counts_window", ""),
		"values drift":                           router.Warn("drift", "", "why", "confounded"),
		"few tokens":                             router.Warn("few_tokens", ""),
		"sharded weights":                        {Code: "sharded_weights"},
	} {
		if have := Label(w); have != want {
			t.Errorf("%v: have %q, want %q", w, have, want)
		}
	}
}

// Of several files, things are added up, numbers are listed and shares are a range.
func TestJoin(t *testing.T) {
	for want, all := range map[string][]router.Warning{
		"12 of 300 launches have no kernel": {router.Warn("lost_kernels", "", "lost", 5, "launches", 100), router.Warn("lost_kernels", "", "lost", 7, "launches", 200)},
		"ranks 0 to 2: collectives end 2.00 µs to 3.00 µs apart": {router.Warn("skew", "", "rank", 2, "spread_ns", 2e3, "transfer_ns", 1e3),
			router.Warn("skew", "", "rank", 0, "spread_ns", 3e3, "transfer_ns", 1e3), router.Warn("skew", "", "rank", 1, "spread_ns", 2e3, "transfer_ns", 1e3)},
		"layers 3, 5: 4 experts with 10.0 % to 20.0 % of": {router.Warn("counts_idle", "", "why", "unused", "layer", 3, "experts", 1, "share", 0.2),
			router.Warn("counts_idle", "", "why", "unused", "layer", 5, "experts", 3, "share", 0.1)},
		"running second changes the value by −3.0 % to +2.0 % (p = 0.1 to 0.8)": {
			router.Warn("order_effect", "", "why", "none", "change", 0.02, "p", 0.8),
			router.Warn("order_effect", "", "why", "none", "change", -0.03, "p", 0.1)},
	} {
		w := all[0]
		for _, o := range all[1:] {
			w = Join(w, o)
		}
		if have := Text(w); !strings.HasPrefix(have, want) {
			t.Errorf("have %q, want %q", have, want)
		}
	}
}

// Each arm excludes steps of its own; ranks that lack kernels are one caveat.
func TestGroup(t *testing.T) {
	if Group(router.Warn("start_up", "normal", "steps", []int{0})) == Group(router.Warn("start_up", "perfect", "steps", []int{0, 1})) {
		t.Error("steps of two arms are one caveat")
	}
	lacks := func(rank, kernels int) router.Warning {
		return router.Warn("few_kernels", "", "why", "all", "rank", rank, "kernels", kernels, "median", 9)
	}
	if Group(lacks(0, 1)) != Group(lacks(3, 2)) {
		t.Error("two ranks without kernels are no one caveat")
	}
}

// A warning that was written is the one read back.
func TestWarningsSurviveJSON(t *testing.T) {
	w := router.Warn("unknown_kernels", "a.sqlite", "share", router.Number(0.25), "kernels", []string{"a"}, "steps", []int32{1, 2}, "none", router.Undefined())
	content, err := json.Marshal(w)
	var back router.Warning
	if err == nil {
		err = json.Unmarshal(content, &back)
	}
	if err != nil || !reflect.DeepEqual(back, w) {
		t.Errorf("%s: have %v, want %v, %v", content, back, w, err)
	}
	if !slices.Equal(slices.Sorted(maps.Keys(w.Args)), []string{"kernels", "none", "share", "steps"}) {
		t.Errorf("have %v", w.Args)
	}
}
