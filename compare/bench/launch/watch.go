package launch

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
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
	worked atomic.Int64 // Unix time of the last look that saw work, ns
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
		MarkOwners(w.gpus, marker)
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
		if g.Utilization > 0 {
			w.worked.Store(time.Now().UnixNano())
		}
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

// Worked is when a look last saw a GPU at work; zero if none did.
func (w *GPUWatch) Worked() time.Time {
	if at := w.worked.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// End ends the watch, after the first look, and returns what it saw.
func (w *GPUWatch) End() ([]GPU, error) {
	w.end()
	<-w.done
	return w.gpus, w.failed
}

// MarkOwners tells the processes that carry the marker from others, and those that
// another campaign has left.
func MarkOwners(gpus []GPU, marker Marker) {
	for _, gpu := range gpus {
		for i, p := range gpu.Processes {
			id := campaignOf(p.PID)
			gpu.Processes[i].Ours = id != "" && NewMarker(id) == marker
			if !gpu.Processes[i].Ours {
				gpu.Processes[i].Campaign = id
			}
		}
	}
}

var errStalled = errors.New("stalled")

// watchStall ends a job whose files do not change and that no GPU works for, for as long
// as Stall allows.
func (j Job) watchStall(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		bytes, last := int64(-1), time.Now()
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(min(j.Stall/8, gpuInterval)):
			}
			if now := FolderSize(j.Folder); now != bytes {
				bytes, last = now, time.Now()
			}
			if at := j.Worked(); at.After(last) {
				last = at
			}
			if time.Since(last) >= j.Stall {
				cancel(fmt.Errorf("%w: no output and no GPU work for %s (--stall)", errStalled, j.Stall))
				return
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// FolderSize is the size of all files of a folder.
func FolderSize(folder string) (bytes int64) {
	_ = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			if info, err := entry.Info(); err == nil {
				bytes += info.Size()
			}
		}
		return nil
	})
	return bytes
}

// WatchCPU starts to measure how many cores are busy on this machine; the
// returned function says how many of them, on average since then, were not ours,
// given the processor time that we used. It is undefined without /proc/stat.
func WatchCPU(now func() time.Time) func(own time.Duration) router.Number {
	began, before := now(), busyCPU()
	return func(own time.Duration) router.Number {
		took := now().Sub(began)
		if after := busyCPU(); before >= 0 && after >= before && took > 0 {
			return router.Number(max(0, (after-before-own).Seconds()/took.Seconds()))
		}
		return router.Undefined()
	}
}

// busyCPU is the time that all cores have spent working since the machine
// started, −1 if unknown: user, nice, system, irq, softirq and steal of the first
// line of /proc/stat, in ticks of 10 ms (proc(5)).
func busyCPU() time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return -1
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return -1
	}
	var ticks int64
	for _, i := range []int{1, 2, 3, 6, 7, 8} {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return -1
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// GPU is one GPU as the driver showed it during a launch: clocks over the looks at which
// it was busy, temperature of the last look, processes of the first.
type GPU struct {
	Index  int    `json:"index"`
	UUID   string `json:"uuid"`
	Name   string `json:"name"`
	Driver string `json:"driver"`
	// Utilization is the share of the last second in which a kernel ran, in percent, at
	// the last look; BusyLooks is how many looks saw at least busyPercent. The clocks are
	// means over those, else of the last look.
	Utilization  router.Number `json:"utilization_percent"`
	BusyLooks    int           `json:"busy_looks"`
	ClockMHz     router.Number `json:"sm_clock_mhz"`
	TemperatureC router.Number `json:"temperature_c"`
	Processes    []GPUProcess  `json:"processes,omitempty"` // computing on it
}

// GPUProcess is a process with a compute context on a GPU.
type GPUProcess struct {
	PID  int    `json:"pid"`
	Name string `json:"name"`
	Ours bool   `json:"ours"` // started by the campaign
	// Campaign is the ID of another campaign that started it; empty for none.
	Campaign string `json:"campaign,omitempty"`
}

// gpuFields are what nvidia-smi is asked for, in the order parseGPUs reads.
const gpuFields = "index,uuid,name,driver_version,clocks.sm,temperature.gpu,utilization.gpu"

// NvidiaSMI asks the program at path, an nvidia-smi, for the GPUs of this
// machine and the processes on them.
func NvidiaSMI(ctx context.Context, path string) ([]GPU, error) {
	out, err := exec.CommandContext(ctx, path, "--query-gpu="+gpuFields, "--format=csv,noheader,nounits").Output()
	if err != nil {
		return nil, fmt.Errorf("asking %s for the GPUs: %w", path, err)
	}
	gpus, err := parseGPUs(string(out))
	if err != nil {
		return nil, err
	}
	out, err = exec.CommandContext(ctx, path, "--query-compute-apps=gpu_uuid,pid,process_name",
		"--format=csv,noheader,nounits").Output()
	if err != nil {
		return nil, fmt.Errorf("asking %s for the processes: %w", path, err)
	}
	return gpus, parseGPUProcesses(string(out), gpus)
}

func parseGPUs(out string) ([]GPU, error) {
	rows, err := smiRows(out, 7)
	if err != nil {
		return nil, err
	}
	var gpus []GPU
	for _, row := range rows {
		index, err := strconv.Atoi(row[0])
		if err != nil {
			return nil, &input.Error{File: "nvidia-smi", Position: "index", Expected: "a number",
				Found: strconv.Quote(row[0])}
		}
		gpus = append(gpus, GPU{
			Index: index, UUID: row[1], Name: row[2], Driver: row[3],
			ClockMHz: smiNumber(row[4]), TemperatureC: smiNumber(row[5]), Utilization: smiNumber(row[6]),
		})
	}
	return gpus, nil
}

func parseGPUProcesses(out string, gpus []GPU) error {
	rows, err := smiRows(out, 3)
	if err != nil {
		return err
	}
	for _, row := range rows {
		pid, err := strconv.Atoi(row[1])
		if err != nil {
			continue // "[Not Found]" of a process in another container: it has no number to show
		}
		for i := range gpus {
			if gpus[i].UUID == row[0] {
				gpus[i].Processes = append(gpus[i].Processes, GPUProcess{PID: pid, Name: row[2]})
			}
		}
	}
	return nil
}

// smiRows reads comma-separated lines of so many fields.
func smiRows(out string, fields int) ([][]string, error) {
	r := csv.NewReader(strings.NewReader(out))
	r.FieldsPerRecord = fields
	r.TrimLeadingSpace = true
	r.LazyQuotes = true
	rows, err := r.ReadAll()
	if err != nil {
		return nil, &input.Error{File: "nvidia-smi", Expected: strconv.Itoa(fields) +
			" comma-separated fields per line", Err: err}
	}
	return rows, nil
}

// smiNumber is a field's number; "[N/A]" and "[Not Supported]" are undefined.
func smiNumber(s string) router.Number {
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil {
		return router.Undefined()
	}
	return router.Number(v)
}
