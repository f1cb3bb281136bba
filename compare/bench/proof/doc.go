// Package proof grades what launches show of their routing: recorded loads, the report's own statement,
// the ranks' acknowledgements, or lines in their logs. A rank is proved by what every counted launch of
// its arm shows; what is only said is a claim. It reads no file.
package proof
