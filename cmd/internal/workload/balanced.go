package workload

import (
	"errors"
	"fmt"
	"os"

	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router"
)

// BalancedRows are the rows that each rank routes by in place of its gate's, from a cache that is
// made for them.
func (c Config) BalancedRows() (rows [][]float32, err error) {
	folder, err := os.MkdirTemp("", "moebalance-logits-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	layout, err := router.Contiguous(c.Gate.Shape.Experts, c.Ranks)
	if err != nil {
		return nil, err
	}
	cache, err := logits.Open(folder, logits.Spec{Model: "workload", Gate: c.Gate, Layout: layout, Mode: router.DEP})
	if err != nil {
		return nil, fmt.Errorf("balanced logits: %w", err)
	}
	for rank := range c.Ranks {
		entry, err := cache.Get(rank, c.Tokens)
		if err != nil {
			return nil, fmt.Errorf("balanced logits of rank %d: %w", rank, err)
		}
		var of []float32
		for t := range c.Tokens {
			of = append(of, entry.Row(nil, t)...)
		}
		rows = append(rows, of)
	}
	return rows, nil
}
