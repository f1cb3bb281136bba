package workload

import "sync"

// barrier is where a fixed number of goroutines wait for each other.
type barrier struct {
	mu      sync.Mutex
	open    *sync.Cond
	parties int
	here    int
	round   int
}

func newBarrier(parties int) *barrier {
	b := &barrier{parties: parties}
	b.open = sync.NewCond(&b.mu)
	return b
}

// wait returns when all parties have called it. The last one to arrive runs
// last first, while all others still wait.
func (b *barrier) wait(last func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.here++
	if b.here == b.parties {
		last()
		b.here = 0
		b.round++
		b.open.Broadcast()
		return
	}
	for round := b.round; round == b.round; {
		b.open.Wait()
	}
}
