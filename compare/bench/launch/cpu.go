package launch

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/moebalance/moebalance/router"
)

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
