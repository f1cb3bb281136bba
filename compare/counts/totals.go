package counts

import (
	"fmt"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/router"
)

// totals is what one walk over all steps finds. It is of the size of the layers
// and iterations, not of the steps.
type totals struct {
	steps      int
	layers     map[int]int64 // their slots
	iterations map[int64]bool
	slots      int64
	loads      map[int]router.Load // by layer, over iterations and source ranks
	received   bool                // every step counts what the ranks received
}

// total walks over the steps once, checking each on the way.
func (r *Record) total() error {
	r.totals = totals{layers: map[int]int64{}, iterations: map[int64]bool{}, loads: map[int]router.Load{},
		received: true}
	var last stepKey
	for s, err := range r.stream {
		if err != nil {
			return err
		}
		if r.steps > 0 && s.key() == last {
			return fmt.Errorf("%v is recorded twice", last)
		}
		last = s.key()
		if err := r.check(s); err != nil {
			return fmt.Errorf("%v: %w", last, err)
		}
		r.totals.add(s)
	}
	return nil
}

func (c *totals) add(s Step) {
	c.steps++
	slots := s.total()
	c.layers[s.Layer] += slots
	c.iterations[s.Iteration] = true
	c.slots += slots
	c.received = c.received && s.Received != nil
	if s.Load.PerExpert == nil {
		return
	}
	if _, ok := c.loads[s.Layer]; !ok {
		c.loads[s.Layer] = router.NewLoad(len(s.Load.PerExpert))
	}
	c.loads[s.Layer].Merge(s.Load)
}

// ByLayer sums the loads over iterations and source ranks; the record keeps
// them. Use it to see which experts are hot; an imbalance computed from it would
// be the ratio of sums, in which busy experts that alternate cancel.
func (r *Record) ByLayer() map[int]router.Load { return r.loads }

// Slots is the number of slots recorded over all steps.
func (r *Record) Slots() int64 { return r.slots }

// LayerSlots are the slots recorded over all steps, by layer.
func (r *Record) LayerSlots() map[int]int64 { return r.layers }

// Layers lists the recorded layers in order.
func (r *Record) Layers() []int { return slices.Sorted(maps.Keys(r.layers)) }

// Iterations lists the recorded iterations in order.
func (r *Record) Iterations() []int64 { return slices.Sorted(maps.Keys(r.iterations)) }
