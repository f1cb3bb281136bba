package launch

import (
	"context"
	"encoding/csv"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
)

// GPU is one GPU as the driver showed it during a launch: clocks over the looks at which
// it was busy, processes of the first look.
type GPU struct {
	Index  int    `json:"index"`
	UUID   string `json:"uuid"`
	Name   string `json:"name"`
	Driver string `json:"driver"`
	// Utilization is the share of the last second in which a kernel ran, in percent, at
	// the last look; BusyLooks is how many looks saw at least busyPercent. The clocks are
	// means over those, else of the last look.
	Utilization router.Number `json:"utilization_percent"`
	BusyLooks   int           `json:"busy_looks"`
	ClockMHz    router.Number `json:"sm_clock_mhz"`
	Processes   []GPUProcess  `json:"processes,omitempty"` // computing on it
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
	for i, query := range []string{"--query-gpu=index,uuid,name,driver_version,clocks.sm,utilization.gpu",
		"--query-compute-apps=gpu_uuid,pid,process_name"} {
		out, err := exec.CommandContext(ctx, path, query, "--format=csv,noheader,nounits").Output()
		if err != nil {
			return nil, fmt.Errorf("asking %s %s: %w", path, query, err)
		}
		answers[i] = string(out)
	}
	return parseGPUs(answers[0], answers[1])
}

// parseGPUs reads GPUs, and the processes on them.
//
//	"0, GPU-aa, NVIDIA H200, 580.159.04, 1980, 98", "GPU-aa, 77, python3" → GPU 0 with process 77
func parseGPUs(cards, processes string) (gpus []GPU, err error) {
	rows, err := smiRows(cards, 6)
	if err != nil {
		return nil, err
	}
	on, err := smiRows(processes, 3)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		g := GPU{UUID: row[1], Name: row[2], Driver: row[3], ClockMHz: smiNumber(row[4]), Utilization: smiNumber(row[5])}
		if g.Index, err = strconv.Atoi(row[0]); err != nil {
			return nil, &input.Error{File: "nvidia-smi", Position: "index", Expected: "a number", Found: strconv.Quote(row[0])}
		}
		for _, p := range on { // "[Not Found]" of a process in another container has no number to show
			if pid, err := strconv.Atoi(p[1]); err == nil && p[0] == g.UUID {
				g.Processes = append(g.Processes, GPUProcess{PID: pid, Name: p[2]})
			}
		}
		gpus = append(gpus, g)
	}
	return gpus, nil
}

// smiRows reads comma-separated lines of so many fields.
func smiRows(out string, fields int) ([][]string, error) {
	r := csv.NewReader(strings.NewReader(out))
	r.FieldsPerRecord, r.TrimLeadingSpace, r.LazyQuotes = fields, true, true
	rows, err := r.ReadAll()
	if err != nil {
		err = &input.Error{File: "nvidia-smi", Expected: strconv.Itoa(fields) + " comma-separated fields per line", Err: err}
	}
	return rows, err
}

// smiNumber is a field's number; "[N/A]" and "[Not Supported]" are undefined.
func smiNumber(s string) router.Number {
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil {
		return router.Undefined()
	}
	return router.Number(v)
}

// gpuInterval is the time between queries of the GPUs. Tests change it.
var gpuInterval = 5 * time.Second

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
	running, end := context.WithCancel(ctx)
	w := &GPUWatch{query: query, end: end, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		if query == nil {
			return
		}
		for w.failed = w.look(ctx, marker); w.failed == nil; _ = w.look(running, marker) { // earlier looks stand
			select {
			case <-running.Done():
				return
			case <-time.After(gpuInterval):
			}
		}
	}()
	return w
}

// look adds one look at the GPUs. The first one tells the processes that carry the marker from others.
func (w *GPUWatch) look(ctx context.Context, marker Marker) error {
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
			for i, p := range g.Processes {
				g.Processes[i].Ours = marker.on(p.PID)
			}
			continue
		}
		before := w.gpus[i]
		if g.Processes = before.Processes; before.BusyLooks > 0 {
			n, add := router.Number(before.BusyLooks), router.Number(g.BusyLooks)
			g.BusyLooks += before.BusyLooks
			g.ClockMHz = (before.ClockMHz*n + g.ClockMHz*add) / (n + add)
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
