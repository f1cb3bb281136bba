// Package chance is the null of load imbalance: what uniformly random distinct
// top-k routing gives at the same shape, layout and number of tokens. It simulates
// with a given seed, and knows nothing of recorded loads or thresholds.
package chance
