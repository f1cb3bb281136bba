package counts

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router"
)

// csvHeader is the first line of SGLang's older CSV.
var csvHeader = regexp.MustCompile(`^layer_id,expert_id,count\r?\n`)

// readCSV reads layer_id,expert_id,count: sums over the whole recording.
func readCSV(s *source, r *Record) error {
	r.Window = true
	layers := map[int]map[int]int64{}
	for i, line := range strings.Split(strings.TrimSpace(string(s.content)), "\n")[1:] {
		fields := strings.Split(strings.TrimSpace(line), ",")
		var numbers [3]int64
		if len(fields) != len(numbers) {
			return fmt.Errorf("line %d: want layer_id,expert_id,count, have %q", i+2, line)
		}
		for j, field := range fields {
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil || n < 0 || j == 0 && n >= maxLayers || j == 1 && n >= maxExperts || n > maxCount {
				return fmt.Errorf("line %d: want layer_id,expert_id,count, have %q", i+2, line)
			}
			numbers[j] = n
		}
		layer, expert := int(numbers[0]), int(numbers[1])
		if layers[layer] == nil {
			layers[layer] = map[int]int64{}
		}
		if _, twice := layers[layer][expert]; twice {
			return fmt.Errorf("line %d: layer %d, expert %d is recorded twice", i+2, layer, expert)
		}
		layers[layer][expert] = numbers[2]
		r.Experts = max(r.Experts, expert+1)
	}
	for layer, parts := range layers {
		r.held = append(r.held, Step{Layer: layer, Load: router.Load{PerExpert: dense(parts, r.Experts)}})
	}
	return nil
}
