// Package metrics reads what a benchmark printed or wrote and returns it in one
// vocabulary: named metrics with unit, direction and definition, the work that
// was done, what the output itself says about the treatment, and iteration rows
// where there are any.
//
// It starts nothing, does not decide which of two launches is faster, and never
// guesses: a key that is missing, or that appears twice with different values, is an
// *input.Error.
//
// Formats are told apart by content, never by file name. Output is streamed;
// memory does not grow with its length (see maxLine, maxElements, maxSteps).
package metrics
