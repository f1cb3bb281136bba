package workload

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/moebalance/moebalance/compare/bench/control"
)

// Follow serves runs, and changes the router to one of the rows of balanced logits and back as the
// folder of MOEBALANCE_CONTROL says. write is called for the counts of each order, apart.
func (e *Engine) Follow(ctx context.Context, address string, rows [][]float32, write func(sequence int) error) error {
	steps, folder := int64(0), os.Getenv("MOEBALANCE_CONTROL")
	var unwritten error
	follower := control.Follower{
		Side: control.Folder(folder), Ranks: len(rows), Own: "off",
		Changed: func(sequence int) { unwritten = errors.Join(unwritten, write(sequence)) },
		Set: func(router string) error {
			switch router {
			case "off":
				e.Balance(nil)
			case "perfect":
				e.Balance(rows)
			default:
				return fmt.Errorf("this workload has the routers off and perfect, not %q", router)
			}
			return nil
		},
	}
	if folder != "" {
		e.Step = func() error {
			steps++
			return errors.Join(follower.Poll(time.Now(), steps-1), unwritten)
		}
	}
	err := e.Serve(ctx, address)
	sequence, _, _ := follower.Sequence()
	return errors.Join(err, write(sequence))
}
