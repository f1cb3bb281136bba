//go:build !linux

package workload

import (
	"errors"
	"time"
)

func threadTime() (time.Duration, error) {
	return 0, errors.New("the processor time of a thread is only known on Linux: use the wall clock")
}
