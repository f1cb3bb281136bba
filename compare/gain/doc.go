// Package gain judges a paired campaign: launches of a benchmark with the learned
// router (the normal arm) and with balanced routing (the perfect arm). Judge
// computes the throughput gain with its interval, checks whether the arms may be
// compared at all, and gives the verdict.
//
// A gain is a fraction: 0.198 means that perfect routing does 19.8 % more work in
// the same time. It is an upper limit for placements of experts: perfect routing
// balances the load of every single step, and also changes the traffic between
// ranks.
//
// The package stands on plain values. It launches, stores and reads nothing.
package gain
