package place

import (
	"bytes"
	"encoding/csv"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// aiconfigurator's times of TensorRT-LLM on H200s: of each EP size, which the fit has not seen, the
// change from contiguous experts to EPLB's, at equal tokens and routing. Nine of ten intervals
// hold what was measured.
func TestIntervalsHoldPairsNotFitted(t *testing.T) {
	if testing.Short() {
		t.Skip("long under the race detector")
	}
	content, err := os.ReadFile("../../../shared/captures/third-party/aiconfigurator-h200-wideep-moe.csv")
	if err != nil {
		t.Skip("no shared captures")
	}
	lines, err := csv.NewReader(bytes.NewReader(content)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for i, name := range lines[0] {
		at[name] = i
	}
	number := func(line []string, name string) float64 {
		v, err := strconv.ParseFloat(line[at[name]], 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	models, sizes := map[[4]int]bool{}, map[string]bool{}
	for _, line := range lines[1:] {
		models[[4]int{int(number(line, "hidden_size")), int(number(line, "inter_size")),
			int(number(line, "num_experts")), int(number(line, "topk"))}] = true
		sizes[line[at["moe_ep_size"]]] = true
	}
	type key struct{ ep, tokens, routing string }
	held, pairs, signs, clear := 0, 0, 0, 0
	width := 0.0
	for of := range models {
		m := router.Model{Hidden: of[0], Intermediate: of[1], Shape: router.Shape{Experts: of[2], TopK: of[3]}}
		for out := range sizes {
			var rest bytes.Buffer
			w := csv.NewWriter(&rest)
			for i, line := range lines {
				if i == 0 || line[at["moe_ep_size"]] != out {
					w.Write(line)
				}
			}
			w.Flush()
			all, err := readTable("t.csv", bytes.NewReader(content), m)
			if err != nil {
				t.Fatal(err)
			}
			// the rows of the model, in the same order
			var rows [][]string
			for _, line := range lines[1:] {
				if int(number(line, "hidden_size")) == m.Hidden && int(number(line, "num_experts")) == m.Experts &&
					int(number(line, "inter_size")) == m.Intermediate && number(line, "rank0_num_tokens") < number(line, "num_tokens") {
					rows = append(rows, line)
				}
			}
			if len(rows) != len(all) {
				t.Fatal(len(rows), len(all))
			}
			before, costs := map[key]observation{}, map[bool]*Cost{}
			for i, line := range rows {
				if !strings.HasSuffix(line[at["distribution"]], "_eplb") {
					before[key{line[at["moe_ep_size"]], line[at["num_tokens"]], line[at["distribution"]]}] = all[i].observation
				}
			}
			for i, line := range rows {
				routing, eplb := strings.CutSuffix(line[at["distribution"]], "_eplb")
				b, ok := before[key{line[at["moe_ep_size"]], line[at["num_tokens"]], routing}]
				if !eplb || !ok || line[at["moe_ep_size"]] != out {
					continue
				}
				c, ok := costs[all[i].tokens <= decodeTokens]
				if !ok {
					if c, err = FromTable("t.csv", bytes.NewReader(rest.Bytes()), m, all[i].tokens); err != nil {
						t.Fatal(err)
					}
					costs[all[i].tokens <= decodeTokens] = c
				}
				a := all[i].observation
				change := c.change([]score{{ns: at3(c, b)}}, []score{{ns: at3(c, a)}})
				measured := router.Number(a.ns/b.ns - 1)
				pairs++
				if change.Low <= measured && measured <= change.High {
					held++
				}
				if change.High < 0 || change.Low > 0 {
					clear++
					if (change.Estimate < 0) == (measured < 0) {
						signs++
					}
				}
				width += float64(change.High-change.Low) / 2
			}
		}
	}
	t.Logf("%d of %d held, half width %.3f, %d of %d signs", held, pairs, width/float64(pairs), signs, clear)
	if pairs < 900 || float64(held) < 0.9*float64(pairs) || math.IsNaN(width) || float64(signs) < 0.9*float64(clear) {
		t.Error("too few")
	}
}

// at3 is an observation by every fit.
func at3(c *Cost, o observation) (ns []float64) {
	for _, f := range c.fits {
		ns = append(ns, o.at(f))
	}
	return ns
}
