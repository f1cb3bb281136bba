package router

import (
	"embed"
	"encoding/json"
	"io/fs"
	"slices"
	"strings"
)

// presets holds the routing fields of published config.json files, and where they stand.
//
//go:embed presets/*.json
var presets embed.FS

// preset reads a preset, whose source is not a field of its config.
func preset(name string) (m Model) {
	var from struct{ Source string }
	text, _ := presets.ReadFile("presets/" + name + ".json")
	_ = json.Unmarshal(text, &from)
	m, _ = parseConfig(text, "")
	m.Name, m.Source = name, from.Source
	return m
}

// modelNames are the names of the presets, in order; it reads none of them.
func modelNames() (names []string) {
	files, _ := fs.ReadDir(presets, "presets") // embedded: nothing here fails, as a test holds
	for _, file := range files {
		names = append(names, strings.TrimSuffix(file.Name(), ".json"))
	}
	slices.Sort(names)
	return names
}

// Models lists the presets by name, each as its published config says. Each call makes new
// ones.
func Models() (list []Model) {
	for _, name := range modelNames() {
		list = append(list, preset(name))
	}
	return list
}

// logitsDType is float32 for the methods that score by sigmoid or softplus and add a bias or
// normalize, whose engines compute the gate in float32, and bfloat16 elsewhere.
func logitsDType(m Method) string {
	if m.Biased() || m == SigmoidRenorm {
		return "f32"
	}
	return "bf16"
}
