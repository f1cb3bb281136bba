package capture

import (
	"path/filepath"
	"regexp"
	"strconv"
)

// rankName wants the whole word: the r1 of "deepseek-r1.rank0.sqlite" is a model's.
var rankName = regexp.MustCompile(`(?i)(?:^|[^a-z])rank[._-]?(\d{1,6})(?:[^0-9a-z]|$)`)

// RankInName reads "normal.rank3.sqlite" and "report_np8_rank3.sqlite".
func RankInName(path string) (int, bool) {
	m := rankName.FindStringSubmatch(filepath.Base(path))
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	return n, err == nil
}
