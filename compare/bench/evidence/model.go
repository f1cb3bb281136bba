package evidence

import (
	"path/filepath"
	"strings"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
)

// GroupLimited is the model that words name whose routing is limited to groups
// of experts, empty where they name none: a preset's name, perhaps with a suffix, or a
// folder with its config.json.
func GroupLimited(words []string, folder string) string {
	for _, word := range words {
		if _, value, ok := strings.Cut(word, "="); ok {
			word = value
		}
		if config, err := input.ReadFile(filepath.Join(InFolder(folder, word), "config.json"), 64<<20); err == nil {
			if m, err := router.ParseConfig(config, ""); err == nil && m.Shape.Grouped() {
				return word
			}
		}
		base := strings.ToLower(filepath.Base(word))
		for _, m := range router.Models() {
			if m.Shape.Grouped() && strings.HasPrefix(base, m.Name) {
				return word
			}
		}
	}
	return ""
}
