// Package counts reads the expert statistics that inference engines record and
// turns them into loads: slots per expert, by step and layer.
//
// Every engine has a format of its own, most have several, and they differ in
// what a number means: slots a rank sent or received, logical experts or
// physical copies, one step or a window of them. Read tells the formats apart
// by content, never by name alone (Formats describes each), and brings them all to
// one Record; ParseMetrics does the same for the answer of a metrics endpoint. What a file does not say
// stays unknown; what cannot be read is refused by name. ReadPlacement reads files
// that say which rank holds which expert.
//
// A format is one entry of a table: how to recognize it, and how to read it.
//
// A recording can be larger than the memory: a folder of TensorRT-LLM's statistics
// holds experts × 8 bytes per rank, step and layer. Its steps are read one at a
// time, and again by each walk over Record.Steps; what all of them have in common,
// such as the sums by layer, is found once. The other formats are read whole.
//
// Imbalance takes the loads through compare/imbalance, with the null of random
// routing beside them. Prefill and decode are different workloads: Phases separates
// them where the format does.
package counts
