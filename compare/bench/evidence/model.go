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

// An engine's options that say over how many ranks experts are spread, and how many processes there are: --ep 4,
// --ep_size=4, --tp_size 8, --pp 2.
var (
	expertParallel = regexp.MustCompile(`(?:^|\s)--(?:moe[_-])?(?:ep|expert[_-]parallel)(?:[_-]size)?[ =](\d{1,4})\b`)
	modelParallel  = regexp.MustCompile(`(?:^|\s)--[tp]p(?:[_-]size)?[ =](\d{1,4})\b`)
)

// Ranks is how many expert-parallel ranks a command asks for, and processes how many it runs, such as 2 and 4 of
// "trtllm-serve … --tp_size 4 --ep_size 2"; 0 where it does not say.
func Ranks(words []string) (ranks, processes int) {
	text := strings.Join(words, " ")
	if m := expertParallel.FindStringSubmatch(text); m != nil {
		ranks, _ = strconv.Atoi(m[1]) // digits
	}
	for _, m := range modelParallel.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1])
		processes = max(processes, 1) * n
	}
	return ranks, processes
}
