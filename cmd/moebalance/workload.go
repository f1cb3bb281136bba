package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/workload"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// perfectRouterVariable is the switch of the treatment, "1" and nothing else,
// as TensorRT-LLM reads it.
const perfectRouterVariable = "ENABLE_PERFECT_ROUTER"

type workloadOptions struct {
	Experts int     `flag:"experts"`
	Layers  int     `flag:"layers"`
	Ranks   int     `flag:"ranks"`
	Tokens  int     `flag:"tokens"`
	Steps   int     `flag:"steps"`
	Skew    float64 `flag:"skew"`
	Seed    uint64  `flag:"seed"`
}

func workloadCmd() *cobra.Command {
	o := workloadOptions{Experts: 32, Layers: 4, Ranks: 4, Tokens: 128, Steps: 16, Skew: 1.5}
	return verb("workload", none, &o, o.run)
}

func (o *workloadOptions) run(c *cobra.Command, _ []string) error {
	config := workload.Config{Perfect: os.Getenv(perfectRouterVariable) == "1",
		Gate:   router.Gate{Method: router.Renormalize, Shape: router.Shape{Experts: o.Experts, TopK: 4}},
		Layers: o.Layers, Ranks: o.Ranks, Tokens: o.Tokens, Steps: o.Steps, Skew: o.Skew, Seed: o.Seed}
	if err := config.Validate(); err != nil {
		return usagef("workload: %w", err)
	}
	engine, err := workload.New(config)
	if err != nil {
		return fmt.Errorf("workload: %w", err)
	}
	for rank := 0; config.Perfect && rank < o.Ranks; rank++ {
		fmt.Fprintf(c.ErrOrStderr(), "perfect router: rank %d of %d routes %s by balanced logits\n", rank, o.Ranks,
			quantity.Count(o.Tokens, "token"))
	}
	result, err := engine.Run(c.Context())
	if err != nil {
		return fmt.Errorf("workload: %w", err)
	}
	if counts := os.Getenv("MOEBALANCE_COUNTS"); counts != "" { // the folder that bench names for its launch
		if err := engine.WriteCounts(counts); err != nil {
			return fmt.Errorf("workload: %w", err)
		}
	}
	return json.NewEncoder(c.OutOrStdout()).Encode(result)
}
