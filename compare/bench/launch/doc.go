// Package launch starts benchmark commands and ends everything that they
// started: a command alone or between the start and the end of its server, under
// MPI, Slurm and container launchers, and under Nsight Systems. It also watches the
// GPUs and processors of this machine beside a command.
//
// The package knows nothing of arms, pairs or results: these are for package bench.
package launch
