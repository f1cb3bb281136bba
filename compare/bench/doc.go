// Package bench runs a paired campaign: the same benchmark command launched
// with the learned router and with a perfect one, alternately, to an order that
// was written down before the first launch.
//
// A Spec says what to run and how the arms differ; Create lays the order down
// in a campaign folder (a SQLite file and the raw output of every launch); Run
// works it off and can be interrupted, killed and resumed at any point.
// Campaign.Evidence returns what was found: pairs of launches, what proves the
// treatment on every rank, and checks that the arms differ in nothing else.
//
// The package does not judge. Whether the pairs amount to a gain is for package
// compare, which also decides what an unproved arm does to the verdict.
package bench
