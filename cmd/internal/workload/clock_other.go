//go:build !linux

package workload

import "time"

// clock is what threadTime is called in results.
const clock = "wall"

var began = time.Now()

// threadTime is wall time, for the system does not tell a thread's processor time.
func threadTime() (time.Duration, error) { return time.Since(began), nil }
