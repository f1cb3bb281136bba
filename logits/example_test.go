package logits_test

import (
	"fmt"
	"os"

	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router"
)

// cache opens one of a small model, 8 experts on 4 ranks, in a new folder.
func cache() (c *logits.Cache, remove func()) {
	dir, err := os.MkdirTemp("", "logits")
	if err != nil {
		panic(err)
	}
	layout, err := router.Contiguous(8, 4)
	if err != nil {
		panic(err)
	}
	c, err = logits.Open(dir, logits.Spec{
		Model:  "small",
		Gate:   router.Gate{Method: router.Renormalize, Shape: router.Shape{Experts: 8, TopK: 2}},
		Layout: layout,
		Mode:   router.DEP,
	})
	if err != nil {
		panic(err)
	}
	return c, func() { _ = os.RemoveAll(dir) }
}

// The logits for rank 1 of 4, for 2 tokens per rank, of a small model. Asked for
// a second time they come from the cache.
func Example() {
	c, remove := cache()
	defer remove()
	e, err := c.Get(1, 2)
	if err != nil {
		panic(err)
	}
	for token := range e.Tokens {
		fmt.Println(e.IDs[2*token:2*token+2], e.Row(nil, token))
	}
	// Output:
	// [2 5] [-32 -32 32 -32 -32 32 -32 -32]
	// [6 0] [32 -32 -32 -32 -32 -32 32 -32]
}
