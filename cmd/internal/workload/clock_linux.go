package workload

import (
	"time"

	"golang.org/x/sys/unix"
)

// clock is what threadTime is called in results.
const clock = "cpu"

// threadTime is the processor time of the calling thread.
func threadTime() (time.Duration, error) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano()), err
}
