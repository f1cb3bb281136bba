package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// watchCPU starts to measure how many cores are busy on this machine; the
// returned function says how many of them, on average since then, were not ours,
// given the processor time that we used. It is undefined without /proc/stat.
func watchCPU(now func() time.Time) func(own time.Duration) router.Number {
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
		return Check{name, Unknown, "what else the processors did was not recorded, or the launches were too short"}
	}
	text := fmt.Sprintf("other processes kept at most %.1f of %s busy, in launch %d", worst.OthersCPU, quantity.Count(worst.Cores, "core"), at)
	if share > othersTolerance {
		return Check{name, Warn, text + ": let the machine do nothing else"}
	}
	return Check{name, Pass, text}
}
