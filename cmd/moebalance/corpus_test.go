package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// corpusFile holds, for each command on a real capture, campaign, count file or placement,
// the answer and the numbers that others rely on. A change of the program leaves it equal,
// or the change of each line is one that a person wanted.
const corpusFile = "testdata/corpus.txt"

// held is, by array or object of the JSON, the keys whose values the corpus holds.
var held = map[string]string{
	"":                         "arm verdict comparable world_size threshold",
	"exports":                  "kernels launches ranges ranks graph_mode",
	"coverage":                 "gpu_ns launch_share layer_share expert_share",
	"kernels":                  "name phase instances normal_ns perfect_ns total_ns mean_ns median_ns min_ns max_ns stddev_ns",
	"phases":                   "rank layer phase instances total_ns normal_ns perfect_ns",
	"layer_times":              "layer phase normal_ns perfect_ns",
	"experts":                  "rank layer expert basis instances total_ns median_ns",
	"imbalance":                "layer level quantity of basis steps max_over_mean imbalance floor null_p95 flagged worst",
	"overall":                  "level quantity layers max_over_mean imbalance worst_layer",
	"summary":                  "level quantity layers max_over_mean worst_layer worst_max_over_mean",
	"step_kinds":               "step_kind steps",
	"bound":                    "gain gain_low gain_high loss_ns step_ns",
	"waiting":                  "steps mean_wait_ns cause cause_ns",
	"step":                     "normal_ns perfect_ns ratio",
	"gain_split":               "basis gain low high",
	"gain_split.parts":         "part saved_ns gain",
	"refusals":                 "code",
	"records":                  "format experts top_k ranks iterations layers slots",
	"loads":                    "layer slots",
	"placements":               "plan default redundant moved_share learned_max_over_mean judged_max_over_mean predicted_time_change verdict",
	"workloads":                "redundant judged_max_over_mean",
	"answer":                   "verdict basis line",
	"answer.numbers":           "label value unit low high basis",
	"answer.reasons":           "",
	"answer.kinds":             "",
	"answer.next":              "text command",
	"answer.caveats":           "code severity",
	"gain":                     "estimate low high confidence n",
	"points":                   "name value verdict",
	"models":                   "name experts top_k groups top_k_groups method layers moe_layers logits_dtype",
	"plans":                    "name ranks tokens_per_rank",
	"plans.certificate":        "active_experts optimal",
	"plans.certificate.rank":   "max_over_mean floor_over_mean",
	"plans.certificate.expert": "max_over_mean floor_over_mean",
	"points.gain":              "estimate low high n",
}

// Every command of the corpus answers as it did. Commands on files that are not part of the
// repository keep their entry where the files are absent.
func TestCorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("every capture; the verbs have tests of their own")
	}
	t.Chdir("../..")
	old := get(corpusFile)
	entries := strings.Split(strings.TrimPrefix(string(old), "$ "), "\n$ ")
	fresh := make([]string, len(entries))
	var group sync.WaitGroup
	slots := make(chan struct{}, 2)
	for i, entry := range entries {
		command, _, _ := strings.Cut(entry, "\n")
		args := strings.Fields(command)
		fresh[i] = strings.TrimSuffix(entry, "\n")
		if !atHand(args) {
			continue
		}
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			fresh[i] = strings.TrimSuffix(command+"\n"+told(t, args[1:]), "\n")
		})
	}
	group.Wait()
	text := "$ " + strings.Join(fresh, "\n$ ") + "\n"
	switch {
	case text == string(old):
	case *update:
		put(t, corpusFile, text)
	default:
		t.Errorf("%s: other answers; go test ./cmd/moebalance -run Corpus -update rewrites it\n%s", corpusFile,
			firstDifference(string(old), text))
	}
}

// atHand reports whether all files that a command names are there.
func atHand(args []string) bool {
	for _, arg := range args {
		if !strings.HasPrefix(arg, "../shared/") {
			continue
		}
		if found, _ := filepath.Glob(arg); len(found) == 0 {
			return false
		}
	}
	return true
}

// told runs a command and returns what the corpus holds of its result: lines of path and value.
func told(t *testing.T, args []string) string {
	out, errs, code := invoke(t.Context(), append(args, "--format", "json")...)
	var b strings.Builder
	if code != exitDone {
		fmt.Fprintf(&b, "exit %d\n", code)
	}
	if out == "" {
		return b.String() + errs
	}
	var result any
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		t.Errorf("%s: %v", strings.Join(args, " "), err)
	}
	hold(&b, "", result)
	return b.String()
}

// hold writes the held keys of a JSON value whose path is known: an object as a line
// (path key=value …), an array of at most twelve rows as such lines, a longer one as a line
// for each key with the number of rows and the sum of numbers or the count of unlike texts.
func hold(b *strings.Builder, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		if keys, ok := held[path]; ok {
			holdRow(b, path, strings.Fields(keys), v)
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			hold(b, strings.TrimPrefix(path+"."+key, "."), v[key])
		}
	case []any:
		keys, ok := held[path]
		switch {
		case !ok || len(v) == 0:
		case len(v) > 12:
			holdColumns(b, path, strings.Fields(keys), v)
		default:
			for _, row := range v {
				hold(b, path, row)
			}
		}
	case string:
		if keys, ok := held[path]; ok && keys == "" {
			fmt.Fprintf(b, "%s %s\n", path, v)
		}
	}
}

func holdRow(b *strings.Builder, path string, keys []string, row map[string]any) {
	said := ""
	for _, key := range keys {
		if v, ok := row[key]; ok && v != nil {
			said += " " + key + "=" + short(v)
		}
	}
	if said != "" {
		fmt.Fprintf(b, "%s%s\n", path, said)
	}
}

func holdColumns(b *strings.Builder, path string, keys []string, rows []any) {
	fmt.Fprintf(b, "%s %d rows\n", path, len(rows))
	for _, key := range keys {
		sum, n, texts := 0.0, 0, map[string]bool{}
		for _, row := range rows {
			fields, _ := row.(map[string]any)
			switch v := fields[key].(type) {
			case float64:
				sum, n = sum+v, n+1
			case nil:
			default:
				texts[short(v)] = true
			}
		}
		if n > 0 {
			fmt.Fprintf(b, "%s.%s n=%d sum=%.9g\n", path, key, n, sum)
		}
		if len(texts) > 0 {
			fmt.Fprintf(b, "%s.%s unlike=%d\n", path, key, len(texts))
		}
	}
}

func short(v any) string {
	switch v := v.(type) {
	case float64:
		return fmt.Sprintf("%.6g", v)
	case string:
		return fmt.Sprintf("%q", v)
	case []any:
		if len(v) > 8 {
			return fmt.Sprintf("[%d]", len(v))
		}
	}
	text, _ := json.Marshal(v)
	return string(text)
}
