package input

import (
	"fmt"
	"strconv"
	"strings"
)

// mostNumbers bounds a list of numbers, which a mistyped range could make endless.
const mostNumbers = 10_000

// Numbers reads whole numbers from 0: 1,8,64, the range 1-16 with both ends, or 1-64:8,
// which is every eighth from 1. In a list, all of them may stand.
func Numbers(text string) (list []int, err error) {
	refused := fmt.Errorf("want whole numbers such as 1,8,64 or the range 1-16 or 1-64:8, have %q", text)
	for part := range strings.SplitSeq(text, ",") {
		span, every, stepped := strings.Cut(strings.TrimSpace(part), ":")
		low, high, ranged := strings.Cut(span, "-")
		if !ranged {
			high = low
		}
		if !stepped {
			every = "1"
		}
		var n [3]uint64
		for i, digits := range []string{low, high, every} {
			if n[i], err = strconv.ParseUint(digits, 10, 62); err != nil {
				return nil, refused
			}
		}
		if n[1] < n[0] || n[2] == 0 || stepped && !ranged {
			return nil, refused
		}
		if uint64(len(list))+(n[1]-n[0])/n[2] >= mostNumbers {
			return nil, fmt.Errorf("want at most %d numbers, have %q", mostNumbers, text)
		}
		for v := n[0]; v <= n[1]; v += n[2] {
			list = append(list, int(v))
		}
	}
	return list, nil
}
