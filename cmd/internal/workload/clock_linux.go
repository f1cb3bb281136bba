package workload

import (
	"syscall"
	"time"
	"unsafe"
)

// threadTime is the processor time the calling thread has used, to the
// nanosecond (clock_gettime(2), CLOCK_THREAD_CPUTIME_ID).
func threadTime() (time.Duration, error) {
	const clockThreadCPUTime = 3
	var t syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockThreadCPUTime, uintptr(unsafe.Pointer(&t)), 0); errno != 0 {
		return 0, errno
	}
	return time.Duration(t.Nano()), nil
}
