package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/logits"
)

// countingKeys are the keys of numbers that are never below 0.
var countingKeys = []string{"layer", "step", "rank", "expert", "worst", "worst_layer", "worst_rank", "requests",
	"context_tokens", "generated_tokens"}

// walk goes through a JSON value and calls see with every member.
func walk(value any, see func(key string, value any)) {
	switch v := value.(type) {
	case []any:
		for _, e := range v {
			walk(e, see)
		}
	case map[string]any:
		for key, e := range v {
			see(key, e)
			walk(e, see)
		}
	}
}

// The ending of the output's name chooses the format, and --json is --format json.
func TestFormatByEnding(t *testing.T) {
	dir := t.TempDir()
	for ending, begins := range map[string]string{".json": "{\n  \"schema_version\"", ".csv": "name,experts,", ".md": "**1 model**", ".txt": "1 model"} {
		path := filepath.Join(dir, "x"+ending)
		if _, errs, code := invoke(t.Context(), "models", "gpt-oss-20b", "-o", path); code != exitDone {
			t.Errorf("%s: exit %d, %s", ending, code, errs)
		}
		if text, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(text), begins) {
			t.Errorf("%s: %.40q, %v", ending, text, err)
		}
	}
	if out, _, _ := invoke(t.Context(), "models", "--json"); !strings.HasPrefix(out, "{") {
		t.Errorf("--json: %.40q", out)
	}
}

// No key of a result goes, and none comes, without a line of testdata/keys.txt, which -update writes: "trace 4
// imbalance.layer". The keys of a version stay, and help formats lists each version.
func TestKeysOfVersions(t *testing.T) {
	const kept = "../../testdata/keys.txt"
	var now []string
	for kind, result := range map[string]any{
		fmt.Sprint("trace ", trace.SchemaVersion): trace.Trace{}, fmt.Sprint("bench ", gain.SchemaVersion): gain.Result{},
		fmt.Sprint("counts ", counts.ResultSchema): counts.Result{}, fmt.Sprint("place ", place.SchemaVersion): place.Result{},
		fmt.Sprint("compare ", diff.SchemaVersion): diff.Comparison{}, "logits 1": logits.Verification{},
	} {
		now = append(now, keysOf(reflect.TypeOf(result), kind+" ")...)
		verb, version, _ := strings.Cut(kind, " ")
		if version != "1" && !regexp.MustCompile(`\n  `+verb+` JSON (.*\n {10})* +`+version+` `).MatchString(helpText("formats")) {
			t.Errorf("help formats does not say what changed in %s", kind)
		}
	}
	slices.Sort(now)
	text, err := os.ReadFile(kept)
	if err != nil && !*update {
		t.Fatal(err)
	}
	for key := range strings.Lines(string(text)) {
		key = strings.TrimSpace(key)
		kind := key[:strings.LastIndex(key, " ")]
		if slices.Contains(now, kind+" schema_version") && !slices.Contains(now, key) {
			t.Errorf("%s is gone: want a new schema version", key)
		}
	}
	if wanted := strings.Join(slices.Compact(now), "\n") + "\n"; *update {
		err = os.WriteFile(kept, []byte(wanted), 0o644)
	} else if wanted != string(text) {
		t.Error("other keys: -update writes them")
	}
	if err != nil {
		t.Error(err)
	}
}

// keysOf are the keys in the JSON of a type: a list's items and a map's values stand for the list.
func keysOf(of reflect.Type, at string) (keys []string) {
	for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Map}, of.Kind()) {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of.Implements(reflect.TypeFor[json.Marshaler]()) {
		return nil
	}
	for _, f := range reflect.VisibleFields(of) {
		switch key, _, _ := strings.Cut(f.Tag.Get("json"), ","); {
		case key == "-" || key == "" && f.Anonymous || !f.IsExported():
		default:
			key = at + cmp.Or(key, f.Name)
			keys = append(append(keys, key), keysOf(f.Type, key+".")...)
		}
	}
	return keys
}
