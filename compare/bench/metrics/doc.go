// Package metrics reads what a benchmark printed or wrote and returns it in one
// vocabulary: named metrics with unit, direction and definition, the work that
// was done, and what the output itself says about the treatment.
//
// It starts nothing, does not decide which of two launches is faster, and never
// guesses: a key that is missing, or that appears twice with different values, is an
// *input.Error.
//
// Every output becomes flat documents, path → value: its objects, the rows of iteration logs, and the labels
// printed under each title. A format is a row of a table that says which metric stands at which path; formats are told
// apart by content, never by file name.
package metrics
