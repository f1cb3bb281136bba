package evidence

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/router/input"
)

// RecordedShare is the share of a launch's steps whose slots a folder of the hook holds, the
// largest of its ranks'; 0 where none says it.
func RecordedShare(folder string) (share float64) {
	paths, _ := filepath.Glob(filepath.Join(folder, "moebalance-hook.rank*.json"))
	for _, path := range paths {
		var said struct {
			Steps    float64 `json:"steps"`
			Recorded float64 `json:"steps_recorded"`
		}
		if text, err := input.ReadFile(path, 1<<20); err == nil && json.Unmarshal(text, &said) == nil &&
			said.Steps > 0 {
			share = max(share, min(1, said.Recorded/said.Steps))
		}
	}
	return share
}

// placing finds options, variables and settings that put experts elsewhere than
// contiguously, with their values.
var placing = regexp.MustCompile(
	`(?i)(?:^|[\s"'{,])(-{0,2}(?:[a-z0-9_.-]*(?:expert[-_]?(?:placement|location|map)|moebalance_placement|eplb|` +
		`redundant[-_]experts|load[-_]?balancer)[a-z0-9_.-]*|placement))(?:["']?\s*[=:]\s*["']?|["']?\s+["']?|` +
		`["']?$)([^\s"',}]*)`)

// ordinary are values of these that leave experts contiguous.
var ordinary = []string{"0", "false", "off", "none", "keep", "linear", "trivial", "contiguous"}

// Placement is the option or variable by which a launch places experts, by its command line and its NAME=VALUE
// variables; empty for none. The file is the one that it names, if it names one.
func Placement(texts []string, folder string) (named, file string) {
	for _, text := range texts {
		for _, m := range placing.FindAllStringSubmatch(text, -1) {
			if slices.Contains(ordinary, strings.ToLower(m[2])) {
				continue
			}
			named = m[1]
			if info, err := os.Stat(InFolder(folder, m[2])); err == nil && info.Mode().IsRegular() {
				return named, InFolder(folder, m[2])
			}
		}
	}
	return named, file
}

// InFolder is a path, made absolute from the folder if it is relative.
func InFolder(folder, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}
