package launch

import (
	"context"
	"time"

	"github.com/moebalance/moebalance/router"
)

// gpuInterval is the time between queries of the GPUs.
const gpuInterval = 5 * time.Second

// busyPercent is the utilization from which a GPU counts as at work: below it, it is
// loading a model or waiting, and its clocks say nothing about the measurement.
const busyPercent = 50

// GPUWatch queries the GPUs beside a launch, so that it costs no time.
type GPUWatch struct {
	query  func(context.Context) ([]GPU, error)
	end    context.CancelFunc
	done   chan struct{}
	gpus   []GPU
	failed error
}

// WatchGPUs begins to watch. A nil query watches nothing.
func WatchGPUs(ctx context.Context, query func(context.Context) ([]GPU, error), marker Marker) *GPUWatch {
	return watchGPUs(ctx, query, marker, gpuInterval)
}

func watchGPUs(ctx context.Context, query func(context.Context) ([]GPU, error), marker Marker,
	interval time.Duration) *GPUWatch {
	running, end := context.WithCancel(ctx)
	w := &GPUWatch{query: query, end: end, done: make(chan struct{})}
	if query == nil {
		close(w.done)
		return w
	}
	go func() {
		defer close(w.done)
		if w.failed = w.look(ctx); w.failed != nil {
			return
		}
		markOurs(w.gpus, marker)
		for {
			select {
			case <-running.Done():
				return
			case <-time.After(interval):
				_ = w.look(running) // the earlier looks stand
			}
		}
	}()
	return w
}

// look adds one look at the GPUs.
func (w *GPUWatch) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	now, err := w.query(ctx)
	if err != nil || w.gpus != nil && len(now) != len(w.gpus) {
		return err
	}
	for i := range now {
		g := &now[i]
		if g.Utilization >= busyPercent {
			g.BusyLooks = 1
		}
		if w.gpus == nil {
			continue
		}
		before := w.gpus[i]
		g.Processes = before.Processes
		if n := before.BusyLooks; n > 0 {
			add := router.Number(g.BusyLooks)
			g.BusyLooks += n
			g.ClockMHz = (before.ClockMHz*router.Number(n) + g.ClockMHz*add) / router.Number(g.BusyLooks)
		}
	}
	w.gpus = now
	return nil
}

// End ends the watch, after the first look, and returns what it saw.
func (w *GPUWatch) End() ([]GPU, error) {
	w.end()
	<-w.done
	return w.gpus, w.failed
}

// markOurs tells the processes that carry the marker from others.
func markOurs(gpus []GPU, marker Marker) {
	for _, gpu := range gpus {
		for i, p := range gpu.Processes {
			gpu.Processes[i].Ours = marker.on(p.PID)
		}
	}
}
