package evidence

import (
	"strings"

	"github.com/moebalance/moebalance/router"
)

// GroupLimited is the word that names a model whose routing is limited to groups of experts, by the name of a preset
// in it; empty where none does.
func GroupLimited(words []string) string {
	for _, word := range words {
		for _, m := range router.Models() {
			if m.Shape.Grouped() && strings.Contains(strings.ToLower(word), m.Name) {
				return word[strings.LastIndex(word, "=")+1:]
			}
		}
	}
	return ""
}
