package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/moebalance/moebalance/"

// mayImport is the table of allowed arrows between our packages: they only run
// down. A package that is not listed may import nothing of ours, and an entry
// covers the packages below it too.
var mayImport = map[string][]string{
	"cmd":                {"cmd/internal", "plots", "compare", "logits", "router", "testdata"},
	"plots":              {"plots", "compare", "logits", "router"},
	"compare":            {"compare/bench", "compare/nsys", "compare/counts", "compare/stats", "router"},
	"compare/bench":      {"compare/bench/metrics", "compare/stats", "router"},
	"compare/nsys":       {"compare/nsys/rows", "compare/stats", "router"},
	"compare/nsys/rows":  {},
	"compare/counts":     {"logits/safetensors", "compare/stats", "router"},
	"compare/stats":      {},
	"logits":             {"logits/safetensors", "router"},
	"logits/safetensors": {},
	"router":             {},
	"testdata":           {},
}

// room is the entry of the table that rules a package: the longest one that is
// the package or stands above it.
func room(pkg string) string {
	best := ""
	for r := range mayImport {
		if (pkg == r || strings.HasPrefix(pkg, r+"/")) && len(r) > len(best) {
			best = r
		}
	}
	return best
}

func TestArrowsOnlyRunDown(t *testing.T) {
	if testing.Short() {
		t.Skip("runs go list")
	}
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}}:{{join .Imports \" \"}}", module+"...").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		pkg, imports, _ := strings.Cut(strings.TrimSpace(line), ":")
		pkg = strings.TrimPrefix(pkg, module)
		from := room(pkg)
		if from == "" {
			t.Errorf("package %s stands in no room of the house", pkg)
			continue
		}
		for _, path := range strings.Fields(imports) {
			to, ours := strings.CutPrefix(path, module)
			if !ours {
				continue
			}
			allowed := func(entry string) bool { return to == entry || strings.HasPrefix(to, entry+"/") }
			if !slices.ContainsFunc(mayImport[from], allowed) {
				t.Errorf("%s imports %s: %s may import only %v", pkg, to, from, mayImport[from])
			}
		}
	}
}
