package input

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// mostNumbers bounds a list of numbers, which a mistyped range could make endless.
const mostNumbers = 10_000

// span is a number, or a range with both ends, perhaps by steps.
var span = regexp.MustCompile(`^(\d{1,18})(?:-(\d{1,18})(?::(\d{1,18}))?)?$`)

// Numbers reads whole numbers from 0: 1,8,64, the range 1-16 with both ends, or 1-64:8,
// which is every eighth from 1. In a list, all of them may stand; it comes in order, each number once.
func Numbers(text string) (list []int, err error) {
	for part := range strings.SplitSeq(text, ",") {
		found := append(span.FindStringSubmatch(strings.TrimSpace(part)), "", "", "", "")
		low, err := strconv.Atoi(found[1]) // the expression takes no number that is too large
		high, _ := strconv.Atoi(cmp.Or(found[2], found[1]))
		every, _ := strconv.Atoi(cmp.Or(found[3], "1"))
		switch {
		case err != nil || high < low || every < 1:
			return nil, fmt.Errorf("want whole numbers such as 1,8,64 or the range 1-16 or 1-64:8, have %q", text)
		case len(list)+(high-low)/every >= mostNumbers:
			return nil, fmt.Errorf("want at most %d numbers, have %q", mostNumbers, text)
		}
		for v := low; v <= high; v += every {
			list = append(list, v)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}
