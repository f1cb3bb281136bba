package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/moebalance/moebalance/cmd/internal/workload"
	"github.com/moebalance/moebalance/router/quantity"
)

// perfectRouterVariable is the switch of the treatment, "1" and nothing else,
// as TensorRT-LLM reads it.
const perfectRouterVariable = "ENABLE_PERFECT_ROUTER"

type workloadOptions struct{ workload.Config }

func (o *workloadOptions) run(c call) error {
	o.Perfect = os.Getenv(perfectRouterVariable) == "1"
	engine, err := workload.New(o.Config)
	if err != nil {
		return usage(err)
	}
	for rank := 0; o.Perfect && rank < o.Ranks; rank++ {
		fmt.Fprintf(c.ErrOrStderr(), "perfect router: rank %d of %d routes %s by balanced logits\n", rank, o.Ranks,
			quantity.Count(o.Tokens, "token"))
	}
	result, err := engine.Run(c.Context())
	if err != nil {
		return err
	}
	return json.NewEncoder(c.OutOrStdout()).Encode(result)
}
