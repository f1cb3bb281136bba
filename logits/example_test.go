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
	e, err := c.Get(1, logits.Equal(2))
	if err != nil {
		panic(err)
	}
	for token := range e.Tokens() {
		fmt.Println(e.IDs[2*token:2*token+2], e.Row(nil, token))
	}
	// Output:
	// [3 5] [-32 -32 -32 32 -32 32 -32 -32]
	// [7 1] [-32 32 -32 -32 -32 -32 -32 32]
}

// A step in which the ranks hold 3, 0, 4 and 1 tokens: 16 slots, 2 for each of 8
// experts. Rank 1 has an entry too, of no rows.
func ExampleUnequal() {
	c, remove := cache()
	defer remove()
	for rank := range 4 {
		e, err := c.Get(rank, logits.Unequal(3, 0, 4, 1))
		if err != nil {
			panic(err)
		}
		fmt.Println(e.Tokens(), e.IDs)
	}
	// Output:
	// 3 [2 4 6 0 3 5]
	// 0 []
	// 4 [4 7 1 2 5 6 0 3]
	// 1 [7 1]
}
