package launch

import (
	"context"
	"encoding/csv"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

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

// gpuFields are what nvidia-smi is asked for, in the order parseGPUs reads.
const gpuFields = "index,uuid,name,driver_version,clocks.sm,utilization.gpu"

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
	rows, err := smiRows(out, 6)
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
			ClockMHz: smiNumber(row[4]), Utilization: smiNumber(row[5]),
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
