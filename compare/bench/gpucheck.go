package bench

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Drift between the arms beyond which the GPUs' state is worth a warning.
const (
	clockTolerance       = 0.02 // relative difference of the mean SM clock
	temperatureTolerance = 5.0  // °C, likewise
)

// checkGPUs compares what nvidia-smi showed beside the launches; false when it
// was never asked.
func (c *Campaign) checkGPUs() ([]Check, bool) {
	seen := false
	strangers := make(map[string]bool)
	var clock, heat [2]mean
	for i, arm := range Arms {
		for _, a := range c.counted(arm) {
			for _, g := range a.GPUs {
				seen = true
				if a.DurationNS >= int64(launch.GPUInterval) { // else the only look was at an idle GPU
					clock[i].add(g.ClockMHz)
				}
				heat[i].add(g.TemperatureC)
				for _, p := range g.Processes {
					if !p.Ours {
						strangers[fmt.Sprintf("%s (GPU %d)", p.Name, g.Index)] = true
					}
				}
			}
		}
	}
	if !seen {
		return nil, false
	}
	others := Check{Name: "other_processes", Status: Pass, Text: "no other process used the GPUs at the start of a launch"}
	if len(strangers) > 0 {
		others = Check{Name: "other_processes", Status: Warn, Text: "also on the GPUs: " + strings.Join(slices.Sorted(maps.Keys(strangers)), ", ")}
	}
	checks := []Check{others}
	if a, b := clock[0].value(), clock[1].value(); a > 0 && b > 0 {
		checks = append(checks, alike("clocks", math.Abs(a-b) <= clockTolerance*max(a, b), "SM clock in the launches: normal %.0f MHz, perfect %.0f MHz", a, b))
	}
	if a, b := heat[0].value(), heat[1].value(); a > 0 && b > 0 {
		checks = append(checks, alike("temperature", math.Abs(a-b) <= temperatureTolerance, "in the launches: normal %.1f °C, perfect %.1f °C", a, b))
	}
	return checks, true
}

// alike is a check of a quantity that should hardly differ between the arms.
func alike(name string, ok bool, format string, normal, perfect float64) Check {
	status := Pass
	if !ok {
		status = Warn
	}
	return Check{Name: name, Status: status, Text: fmt.Sprintf(format, normal, perfect)}
}

// mean of the numbers that are defined.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(v router.Number) {
	if v.Defined() {
		m.sum += v.Float64()
		m.n++
	}
}

// value is NaN of no numbers.
func (m mean) value() float64 { return m.sum / float64(m.n) }

// othersTolerance is the share of a machine's cores beyond which the work of
// others during a launch is worth a warning.
const othersTolerance = 0.1

// checkOthers warns when other processes kept the processors busy during a
// counted launch, by the cores of the machine that launched it. Launches of less
// than half a second are too short for the system's ticks and are left out.
func (c *Campaign) checkOthers() Check {
	const name = "other_load"
	var worst Attempt
	share, at := router.Undefined(), 0
	for _, l := range c.Launches {
		a, ok := l.Done()
		if !ok || l.Kind != Timed || !a.OthersCPU.Defined() || a.Cores == 0 || a.DurationNS < int64(time.Second/2) {
			continue
		}
		if of := a.OthersCPU / router.Number(a.Cores); !(of <= share) {
			worst, share, at = a, of, l.Position
		}
	}
	if !share.Defined() {
		return Check{Name: name, Status: Unknown, Text: "what else the processors did was not recorded, or the launches were too short"}
	}
	text := fmt.Sprintf("other processes kept at most %.1f of %s busy, in launch %d", worst.OthersCPU, quantity.Count(worst.Cores, "core"), at)
	if share > othersTolerance {
		return Check{Name: name, Status: Warn, Text: text + ": let the machine do nothing else"}
	}
	return Check{Name: name, Status: Pass, Text: text}
}
