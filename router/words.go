package router

import (
	"fmt"
	"strings"
)

// Count writes n of something in words: 1 layer, 2 layers, 0 entries, 3 launches.
// It takes English nouns that form their plural by rule. It stands here because
// every package above says how many of something there are.
func Count[N int | int32 | int64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, plural(one))
}

func plural(one string) string {
	for _, hiss := range []string{"s", "x", "ch", "sh"} {
		if strings.HasSuffix(one, hiss) {
			return one + "es"
		}
	}
	if stem, ok := strings.CutSuffix(one, "y"); ok && !strings.ContainsAny(stem[max(0, len(stem)-1):], "aeiou") {
		return stem + "ies"
	}
	return one + "s"
}
