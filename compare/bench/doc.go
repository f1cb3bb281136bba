// Package bench runs a campaign: the same benchmark with the learned router and with a perfect one, in pairs of
// launches or in launches that hold all arms, to an order that was written down before the first launch.
//
// A Spec says what to run and how the arms differ; Create writes the order into a
// campaign folder (a SQLite file and the raw output of every launch); Run executes it
// and can be interrupted, killed and resumed at any point. Recorded returns what was
// found: the launches, what proves the treatment on every rank, and checks that the
// arms differ in nothing else. Package launch starts and ends the processes.
//
// The package does not judge. Package gain computes the gain and decides how an
// unproved arm affects the verdict.
package bench
