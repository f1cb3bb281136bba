package logits

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// conforms says where a value breaks the keywords that Schema uses.
func conforms(root, schema map[string]any, at string, value any) (faults []string) {
	if ref, ok := schema["$ref"].(string); ok {
		schema = root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
	text, isText := value.(string)
	object, isObject := value.(map[string]any)
	kinds := map[any]bool{"string": isText, "object": isObject, nil: true, "array": !isText && !isObject}
	if !kinds[schema["type"]] {
		return []string{at + " is no " + schema["type"].(string)}
	}
	if want, ok := schema["const"]; ok && want != value {
		faults = append(faults, at+" is not constant")
	}
	if want, ok := schema["enum"].([]any); ok && !slices.Contains(want, value) {
		faults = append(faults, at+" is none of the values")
	}
	if want, ok := schema["pattern"].(string); ok && !regexp.MustCompile(want).MatchString(text) {
		faults = append(faults, at+" does not match "+want)
	}
	if !isObject {
		return faults
	}
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if _, ok := object[name.(string)]; !ok {
			faults = append(faults, at+" lacks "+name.(string))
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if p, ok := properties[name].(map[string]any); ok {
			faults = append(faults, conforms(root, p, at+"."+name, object[name])...)
		} else if schema["additionalProperties"] == false {
			faults = append(faults, at+" has "+name)
		}
	}
	return faults
}

// Every kind of entry has a header as the schema says, with no key that it lacks.
func TestSchema(t *testing.T) {
	var root map[string]any
	if err := json.Unmarshal([]byte(Schema), &root); err != nil {
		t.Fatal(err)
	}
	grouped := router.Gate{Method: router.DeepSeekV3, Shape: router.Shape{Experts: 16, TopK: 2, Groups: 4,
		TopKGroups: 2}, Scale: 2.5, Bias: make([]float32, 16)}
	grouped.Bias[3] = -100 // chosen by no token
	flat := router.Gate{Method: router.Renormalize, Shape: router.Shape{Experts: 16, TopK: 2}}
	layout, err := router.Contiguous(16, 2)
	if err != nil {
		t.Fatal(err)
	}
	other, err := router.Placed(16, [][]int32{{0, 2, 4, 6, 8, 10, 12, 14}, {1, 3, 5, 7, 9, 11, 13, 15}})
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	for _, c := range []struct {
		spec   Spec
		tokens int
	}{
		{Spec{Model: "m", Gate: grouped, Layout: layout, Mode: router.TEP, DType: Float32}, AnyTokens},
		{Spec{Model: "m", Gate: flat, Layout: other, Mode: router.DEP, DType: BFloat16}, AnyTokens},
		{Spec{Model: "m", Gate: flat, Layout: layout, Mode: router.DEP, DType: Float16, Layer: 3}, 5},
		{Spec{Model: "m", Gate: flat, Layout: layout, Mode: router.DEP}, AnyTokens},
	} {
		folder := t.TempDir()
		cache, err := Open(folder, c.spec)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cache.Get(1, c.tokens); err != nil {
			t.Fatal(err)
		}
		files, _ := filepath.Glob(filepath.Join(folder, "*.safetensors"))
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var header map[string]any
			if err := json.NewDecoder(strings.NewReader(string(content[8:]))).Decode(&header); err != nil {
				t.Fatal(err)
			}
			if faults := conforms(root, root, "header", header); len(faults) > 0 {
				t.Errorf("%s: %q", filepath.Base(file), faults)
			}
			for key := range header["__metadata__"].(map[string]any) {
				keys[key] = true
			}
		}
	}
	known := root["properties"].(map[string]any)["__metadata__"].(map[string]any)["properties"].(map[string]any)
	if got, want := slices.Sorted(maps.Keys(keys)), slices.Sorted(maps.Keys(known)); !slices.Equal(got, want) {
		t.Errorf("keys %v, the schema has %v", got, want)
	}
	bad := map[string]any{"__metadata__": map[string]any{"schema": "moebalance.logits/0", "rank": "-1", "mode": "ep"}}
	for _, want := range []string{"header lacks expert_ids", "schema is not constant", "rank does not match",
		"mode is none", "lacks checksum"} {
		if faults := strings.Join(conforms(root, root, "header", bad), "; "); !strings.Contains(faults, want) {
			t.Errorf("%q: want %q", faults, want)
		}
	}
}
