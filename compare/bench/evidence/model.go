package evidence

import (
	"regexp"
	"strconv"
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

// expertParallel finds the option of an engine that says over how many ranks experts are spread: --ep 4, --ep_size=4.
var expertParallel = regexp.MustCompile(`(?:^|\s)--(?:moe[_-])?(?:ep|expert[_-]parallel)(?:[_-]size)?[ =](\d+)(?:\s|$)`)

// Ranks is how many expert-parallel ranks a command asks for, such as 4 of "trtllm-serve … --ep_size 4"; 0 where it
// does not say.
func Ranks(words []string) (ranks int) {
	if m := expertParallel.FindStringSubmatch(strings.Join(words, " ")); m != nil {
		ranks, _ = strconv.Atoi(m[1]) // 0 where it is no number that anybody means
	}
	return ranks
}
