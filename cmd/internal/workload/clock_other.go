//go:build !linux

package workload

import (
	"errors"
	"time"
)

func threadTime() (time.Duration, error) {
	return 0, errors.New("thread processor time is available on Linux only: use --clock wall")
}
