package input

import (
	"regexp"
	"strconv"
)

// launcher is what srun --label, mpirun --tag-output and torchrun put before a line.
var launcher = regexp.MustCompile(`^(?:\s*(\d+): |\[\d+,(\d+)\](?:<std(?:out|err)>)?: ?|\[(?:rank|default)(\d+)\]:? ?)`)

// LauncherRank is the rank that a launcher put before a line, and where the line itself begins:
// "[1,3]<stdout>:speed 5" → 3, 14. Without one it is −1, 0.
func LauncherRank(line string) (rank, at int) {
	m := launcher.FindStringSubmatch(line[:min(len(line), 64)])
	if m == nil {
		return -1, 0
	}
	n, err := strconv.Atoi(m[1] + m[2] + m[3])
	if err != nil || n > 1e6 { // no number of ranks that anybody has
		return -1, 0
	}
	return n, len(m[0])
}
