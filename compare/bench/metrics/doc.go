// Package metrics reads what a benchmark printed or wrote and returns it in one
// vocabulary: named metrics with unit, direction and definition, the work that
// was done, and what the output itself says about the treatment.
//
// It starts nothing, does not decide which of two launches is faster, and never
// guesses: a key that is missing, or that appears twice with different values, is an
// *input.Error.
//
// An output becomes flat documents, path → value: one for each object and for each line. One dictionary says which
// metric stands at which path, for all tools; a format is a row of a table that says how a tool's layout is recognized.
// Formats are told apart by content, never by file name.
//
// A throughput takes three forms here: a text of the output, a value of a document, and a Metric of a Result. Package
// bench makes a gain.Measurement of the Result; the forms behind it, gains of blocks and units, of a comparison and of
// the whole, are package gain's.
package metrics
