package place

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// tableColumns are those of a cost table, as aiconfigurator's collector for
// TensorRT-LLM's wide EP writes them (collector/wideep/trtllm): num_tokens of all
// ranks, of which rank0_num_tokens choose at least one expert of the busiest rank, and
// that rank's latency in milliseconds.
var tableColumns = []string{"num_tokens", "rank0_num_tokens", "hidden_size", "inter_size", "topk", "num_experts",
	"num_slots", "moe_ep_size", "latency"}

// tableKinds may not differ within the rows of a model: a cost is of one of each.
var tableKinds = []string{"framework", "version", "device", "kernel_source", "moe_dtype"}

// decodeTokens is the most tokens of a step, all ranks together, that counts as decode.
const decodeTokens = 512

// FromTable fits the costs of a table to its rows of the model, those of few tokens and
// those of many apart, and takes the one for tokens in a step. A row does not say how
// many slots its rank has: k picks that reach the rank with probability s leave it
// r = T·(1−(1−s)ᵏ) of T tokens, which gives T·k·s slots; rows that send every token
// there say nothing and are left out. The slots fill the rank's experts by chance.
func FromTable(file string, in io.Reader, m router.Model, tokens float64) (*Cost, error) {
	rows, err := readTable(file, in, m)
	if err != nil {
		return nil, err
	}
	c := &Cost{Basis: "cost table", Source: file, Of: imbalance.OfPhase, StepNS: router.Undefined(),
		LeastTokens: router.Number(math.Inf(1)),
		slots:       tokens * float64(m.TopK), TopK: m.TopK}
	for _, regime := range []struct {
		name string
		has  func(tokens float64) bool
	}{
		{fmt.Sprintf("decode (up to %d tokens)", decodeTokens), func(t float64) bool { return t <= decodeTokens }},
		{fmt.Sprintf("prefill (more than %d tokens)", decodeTokens), func(t float64) bool { return t > decodeTokens }},
	} {
		var obs []observation
		for _, r := range rows {
			if regime.has(r.tokens) {
				obs = append(obs, r.observation)
			}
		}
		fits, h, reason := fitAll(obs, "EP size")
		if reason.Code != "" {
			if regime.has(tokens) {
				found := "times that follow no non-negative cost of slots and experts"
				if h.Groups < leastGroups {
					found = fmt.Sprintf("%s, where a cost takes at least %d", quantity.Count(h.Groups, h.Group), leastGroups)
				}
				return nil, &input.Error{File: file, Expected: "rows of " + regime.name, Found: found}
			}
			continue
		}
		for _, r := range obs {
			c.LeastTokens, c.MostTokens = min(c.LeastTokens, router.Number(r.tokens)), max(c.MostTokens, router.Number(r.tokens))
		}
		h.Regime = regime.name
		if c.HeldOut = append(c.HeldOut, h); regime.has(tokens) {
			c.fits, c.off = fits, h.Change
		} else {
			c.other = fits[0]
		}
	}
	c.publish(true)
	return c, nil
}

type tableRow struct {
	tokens float64
	observation
}

func readTable(file string, in io.Reader, m router.Model) (rows []tableRow, err error) {
	lines, err := csv.NewReader(in).ReadAll()
	if err == nil && len(lines) == 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, &input.Error{File: file, Expected: "a CSV cost table", Err: err}
	}
	at := map[string]int{}
	for i, name := range lines[0] {
		at[strings.TrimSpace(name)] = i
	}
	for _, name := range tableColumns {
		if _, ok := at[name]; !ok {
			return nil, &input.Error{File: file, Position: "line 1", Expected: "the columns " +
				strings.Join(tableColumns, ", "), Found: "none of the name " + name}
		}
	}
	model := []float64{float64(m.Hidden), float64(m.Intermediate), float64(m.TopK), float64(m.Experts)}
	kinds, other := map[string]string{}, 0
	for number, record := range lines[1:] {
		v := make([]float64, len(tableColumns))
		for i, name := range tableColumns {
			if v[i], err = strconv.ParseFloat(record[at[name]], 64); err != nil || !(v[i] > 0) || math.IsInf(v[i], 0) {
				return nil, &input.Error{File: file, Position: fmt.Sprintf("line %d, %s", number+2, name),
					Expected: "a number above 0", Found: strconv.Quote(record[at[name]])}
			}
		}
		if !slices.Equal(v[2:6], model) {
			other++
			continue
		}
		for _, name := range tableKinds {
			if i, ok := at[name]; ok {
				if first, seen := kinds[name]; seen && first != record[i] {
					return nil, &input.Error{File: file, Expected: "rows of one " + name, Found: first + " and " +
						record[i], Try: "keep the rows of one"}
				}
				kinds[name] = record[i]
			}
		}
		if tokens, reached, k := v[0], v[1], v[4]; reached < tokens {
			slots := tokens * k * (1 - math.Pow(1-reached/tokens, 1/k))
			held := v[6] / v[7]
			rows = append(rows, tableRow{tokens, observation{group: int(v[7]), tokens: tokens, slots: slots,
				active: -held * math.Expm1(-slots/held), ns: 1e6 * v[8]}})
		}
	}
	if len(rows) == 0 {
		return nil, &input.Error{File: file,
			Expected: fmt.Sprintf("rows of hidden_size %d, inter_size %d, topk %d, num_experts %d", m.Hidden,
				m.Intermediate, m.TopK, m.Experts), Found: fmt.Sprintf("%d of other shapes", other)}
	}
	return rows, nil
}
