package router

import (
	"embed"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
)

// presets holds the routing fields of published config.json files, and where they stand.
//
//go:embed presets/*.json
var presets embed.FS

var models = sync.OnceValue(func() (list []Model) {
	for _, name := range ModelNames() {
		text, _ := presets.ReadFile("presets/" + name + ".json")
		c, _ := readFields(text)
		m, _ := c.model("")
		m.Name, m.Source = name, c.text("source")
		repository, _, _ := strings.Cut(m.Source, " ")
		m.Title = path.Base(repository)
		list = append(list, m)
	}
	return list
})

// ModelNames are the names of the presets, in order; it reads none of them.
func ModelNames() (names []string) {
	files, _ := fs.ReadDir(presets, "presets") // embedded: nothing here fails, as a test holds
	for _, file := range files {
		names = append(names, strings.TrimSuffix(file.Name(), ".json"))
	}
	slices.Sort(names)
	return names
}

// Models lists the presets by name, each as its published config says. Each call makes new
// ones.
func Models() []Model {
	list := slices.Clone(models())
	for i, m := range list {
		list[i].Dense, list[i].Hash = slices.Clone(m.Dense), slices.Clone(m.Hash)
	}
	return list
}

// logitsDType is float32 for the methods that score by sigmoid or softplus and
// add a bias, whose engines compute the gate in float32, and bfloat16 elsewhere.
func logitsDType(m Method) string {
	if m.Biased() || m == SigmoidRenorm {
		return "f32"
	}
	return "bf16"
}
