package counts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/moebalance/moebalance/router/quantity"
)

// wholes are counts in JSON, which tools also write as 12.0.
type wholes []int64

func (w *wholes) UnmarshalJSON(text []byte) error {
	var values []float64
	if err := json.Unmarshal(text, &values); err != nil {
		return err
	}
	if bytes.Contains(text, []byte("null")) { // that decodes as 0
		return fmt.Errorf("want whole counts, have null in %.60s", text)
	}
	*w = make(wholes, len(values))
	for i, v := range values {
		if v != math.Trunc(v) || math.Abs(v) > maxCount {
			return fmt.Errorf("want whole counts below %d, have %v", int64(maxCount), v)
		}
		(*w)[i] = int64(v)
	}
	return nil
}

// isNested reports lists within lists within lists.
func isNested(text []byte) bool {
	opened := 0
	for _, c := range text {
		switch {
		case c == '[':
			opened++
		case !bytes.ContainsRune([]byte(" \t\r\n"), rune(c)):
			return opened >= 3
		}
	}
	return false
}

// readLogicalCount reads {"logical_count": …} as SGLang saves it, and takes it as
// --init-expert-location: steps × layers × experts, or the sum over the steps.
func readLogicalCount(s *source, r *Record) error {
	if err := s.object(&s.keys); err != nil {
		return err
	}
	count := s.keys["logical_count"]
	if !isNested(count) {
		return r.addMatrix(count)
	}
	var steps [][]wholes
	if err := json.Unmarshal(count, &steps); err != nil {
		return fmt.Errorf("logical_count: %w", err)
	}
	return r.addPasses(len(steps), func(step int) [][]int64 { return rowsOf(steps[step]) })
}

// readFastDeploy reads tokens_per_expert_stats_list of rearrange-experts.json,
// or the answer of /get_per_expert_tokens_stats: layers × logical experts,
// summed since the last rearrangement. Where the experts were is not read: the
// file does not say it in one way. Source: FastDeploy, fastdeploy/eplb/utils.py,
// RedundantExpertWorkload.dump.
func readFastDeploy(s *source, r *Record) error {
	if err := s.object(&s.keys); err != nil {
		return err
	}
	if rows := s.keys["tokens_per_expert_stats_list"]; rows != nil {
		return r.addMatrix(rows)
	}
	return r.addMatrix(s.keys["data"])
}

// readMatrix reads a list of lists alone in its file.
func readMatrix(s *source, r *Record) error {
	switch {
	case len(s.values) != 1:
		return fmt.Errorf("want one list of layers × experts, have %d values", len(s.values))
	case isNested(s.values[0]):
		return errors.New(`want a list of layers × experts, have three dimensions: name them as {"logical_count": [steps × layers × experts]} or {"routed_experts": [tokens × layers × top-k]}`)
	}
	return r.addMatrix(s.values[0])
}

// addMatrix adds sums over the whole recording, layers × experts.
func (r *Record) addMatrix(text []byte) error {
	var layers []wholes
	if err := json.Unmarshal(text, &layers); errors.As(err, new(*json.UnmarshalTypeError)) {
		return fmt.Errorf("want lists of counts, layers × experts, have %.60s", text)
	} else if err != nil {
		return err
	}
	r.Window = true
	return r.addLayers(0, rowsOf(layers))
}

func rowsOf(lists []wholes) [][]int64 {
	rows := make([][]int64, len(lists))
	for i, list := range lists {
		rows[i] = list
	}
	return rows
}

// addPasses adds the layers of n passes. Those without any count are left out:
// SGLang's recorder is a ring buffer, which may not be full.
func (r *Record) addPasses(n int, layers func(pass int) [][]int64) error {
	empty := 0
	for pass := range n {
		rows := layers(pass)
		if !slices.ContainsFunc(rows, func(row []int64) bool { return !isZero(row) }) {
			empty++
			continue
		}
		if err := r.addLayers(int64(pass), rows); err != nil {
			return err
		}
	}
	if empty > 0 {
		r.warn("empty_steps", "%d of %s excluded: they hold no counts, as the recorder's buffer was not full", empty, quantity.Count(n, "step"))
	}
	return nil
}

func isZero(counts []int64) bool {
	return !slices.ContainsFunc(counts, func(n int64) bool { return n != 0 })
}

// readNPY reads an array [layers, experts], or [layers, ranks, local experts]
// as vllm-ascend's experiments save it. It is a sum over many passes.
func readNPY(s *source, r *Record) error {
	a, err := s.array()
	if err != nil {
		return err
	}
	if a.Values == nil || len(a.Shape) != 2 && len(a.Shape) != 3 || a.Shape[0] < 1 || a.Shape[0] > maxLayers {
		return fmt.Errorf("want counts of [layers, experts] or [layers, ranks, local experts], have %v", a.Shape)
	}
	r.Window = true
	if len(a.Shape) == 3 {
		r.Ranks = int(a.Shape[1])
	}
	if distinct, _ := likeRoutes(a); distinct {
		r.warn("ambiguous_array", "read as loads of [layers, ranks, local experts]; so few numbers could also be expert ids of [tokens, layers, top-k], which as JSON are named \"routed_experts\"")
	}
	return r.addLayers(0, a.Rows())
}
