package launch

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
)

// GPU is one GPU as the driver showed it during a launch.
type GPU struct {
	Index int    `json:"index"`
	UUID  string `json:"uuid"`
	Name  string `json:"name"`
	// BusyLooks is how many looks saw the GPU busy, by the share of the last second in which a kernel ran; the clock is
	// the mean over those, else of the last look.
	BusyLooks int           `json:"busy_looks"`
	ClockMHz  router.Number `json:"sm_clock_mhz"`
	Processes []GPUProcess  `json:"processes,omitempty"` // computing on it at the first look
}

// GPUProcess is a process with a compute context on a GPU.
type GPUProcess struct {
	PID  int    `json:"pid"`
	Name string `json:"name"`
	Ours bool   `json:"ours"` // started by the campaign
}

// NvidiaSMI asks the program at path, an nvidia-smi, for the GPUs of this
// machine and the processes on them.
func NvidiaSMI(ctx context.Context, path string) ([]GPU, error) {
	var answers [2]string
	for i, query := range []string{"--query-gpu=index,uuid,name,clocks.sm,utilization.gpu",
		"--query-compute-apps=gpu_uuid,pid,process_name"} {
		out, err := exec.CommandContext(ctx, path, query, "--format=csv,noheader,nounits").Output()
		if err != nil {
			return nil, fmt.Errorf("asking %s %s: %w", path, query, err)
		}
		answers[i] = string(out)
	}
	return parseGPUs(answers[0], answers[1])
}

// busyPercent is the utilization from which a GPU counts as at work: below it, it is
// loading a model or waiting, and its clocks say nothing about the measurement.
const busyPercent = 50

// parseGPUs reads GPUs, and the processes on them. What the driver does not know, "[N/A]", is undefined; a
// process in another container, "[Not Found]", has no number to show.
//
//	"0, GPU-aa, NVIDIA H200, 1980, 98", "GPU-aa, 77, python3" → GPU 0 with process 77
func parseGPUs(cards, processes string) (gpus []GPU, err error) {
	for card := range strings.Lines(cards) {
		f := strings.Split(strings.TrimSpace(card), ", ")
		index, err := strconv.Atoi(f[0])
		if err != nil || len(f) != 5 {
			return nil, &input.Error{File: "nvidia-smi", Expected: "an index and 4 more fields, with commas between",
				Found: strconv.Quote(card)}
		}
		g := GPU{Index: index, UUID: f[1], Name: f[2], ClockMHz: router.Undefined()}
		if mhz, err := strconv.ParseFloat(f[3], 64); err == nil {
			g.ClockMHz = router.Number(mhz)
		}
		if share, err := strconv.ParseFloat(f[4], 64); err == nil && share >= busyPercent {
			g.BusyLooks = 1
		}
		for process := range strings.Lines(processes) {
			if p := strings.SplitN(strings.TrimSpace(process), ", ", 3); len(p) == 3 && p[0] == g.UUID {
				if pid, err := strconv.Atoi(p[1]); err == nil {
					g.Processes = append(g.Processes, GPUProcess{PID: pid, Name: p[2]})
				}
			}
		}
		gpus = append(gpus, g)
	}
	return gpus, nil
}

// gpuInterval is the time between queries of the GPUs. Tests change it.
var gpuInterval = 5 * time.Second

// WatchGPUs queries the GPUs beside a launch until end is called, which returns what it saw, with one look at least.
// A nil query watches nothing.
func WatchGPUs(ctx context.Context, query func(context.Context) ([]GPU, error), marker Marker) (
	end func() ([]GPU, error)) {
	running, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	var gpus []GPU
	var failed error
	go func() {
		defer close(done)
		if query == nil {
			return
		}
		for gpus, failed = look(ctx, query, nil, marker); failed == nil; {
			select {
			case <-running.Done():
				return
			case <-time.After(gpuInterval):
				if now, err := look(running, query, gpus, marker); err == nil { // else the earlier looks stand
					gpus = now
				}
			}
		}
	}()
	return func() ([]GPU, error) { cancel(); <-done; return gpus, failed }
}

// look adds a look at the GPUs to what earlier ones saw. The first tells the processes that carry the marker from
// others.
func look(ctx context.Context, query func(context.Context) ([]GPU, error), before []GPU, marker Marker) ([]GPU, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	now, err := query(ctx)
	if err != nil || before != nil && len(now) != len(before) {
		return before, err
	}
	for i := range now {
		g := &now[i]
		if before == nil {
			for j, p := range g.Processes {
				g.Processes[j].Ours = marker.on(p.PID)
			}
			continue
		}
		if g.Processes = before[i].Processes; before[i].BusyLooks > 0 {
			n, add := router.Number(before[i].BusyLooks), router.Number(g.BusyLooks)
			g.BusyLooks += before[i].BusyLooks
			g.ClockMHz = (before[i].ClockMHz*n + g.ClockMHz*add) / (n + add)
		}
	}
	return now, nil
}
