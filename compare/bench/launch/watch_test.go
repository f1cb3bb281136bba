package launch

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A launch of which most is loading a model: clocks of 210 MHz while idle, 1980 and 1900
// while busy. A mean over all looks would say 822 MHz, the last look 210.
func TestClocksWhileBusy(t *testing.T) {
	looks := []GPU{{ClockMHz: 210}, {ClockMHz: 210}, {ClockMHz: 1980, BusyLooks: 1}, {ClockMHz: 210},
		{ClockMHz: 1900, BusyLooks: 1}, {ClockMHz: 210}}
	taken := make(chan struct{}) // closed by the look after the last, when that has been taken in
	n := 0
	interval := gpuInterval
	gpuInterval = time.Millisecond
	defer func() { gpuInterval = interval }()
	end := WatchGPUs(context.Background(), func(context.Context) ([]GPU, error) {
		if n++; n == len(looks)+1 {
			close(taken)
		}
		if n > len(looks) {
			return nil, errors.New("enough")
		}
		l := looks[n-1]
		l.Processes = make([]GPUProcess, n)
		return []GPU{l}, nil
	}, NewMarker("x"))
	<-taken
	gpus, err := end()
	if err != nil || len(gpus) != 1 {
		t.Fatal(gpus, err)
	}
	if g := gpus[0]; g.BusyLooks != 2 || g.ClockMHz != 1940 ||
		len(g.Processes) != 1 {
		t.Errorf("%+v, want the mean of 1980 and 1900 MHz, the first look's process", g)
	}
}
