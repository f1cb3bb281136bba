// Package stats holds the statistics of paired comparisons: few pairs, unknown
// noise, one question.
//
// Every function takes plain slices of differences (or of log ratios, one per
// pair) and returns values; nothing is read, printed, cached or drawn from a
// hidden source of randomness. The estimate to lead with is Crossover, which takes out
// what the order of the two launches adds. Package gain says why.
//
// What the package assumes is said per function; what all of them assume is
// that the pairs are independent and that a pair's order of execution was
// balanced or random.
//
// Undefined results are NaN, never zero.
package stats
