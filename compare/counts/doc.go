// Package counts reads the expert statistics that inference engines record and
// turns them into loads: slots per expert, by step and layer.
//
// Every engine has a format of its own, most have several, and they differ in
// what a number means: slots a rank sent or received, logical experts or
// physical copies, one step or a window of them. Read tells the formats apart
// by content, never by name alone, and brings them all to one Record. What a
// file does not say stays unknown; what cannot be read is refused by name.
// ReadPlacement does the same for files that say where the experts are.
//
// A recording can be larger than the memory: a folder of TensorRT-LLM's statistics
// holds experts × 8 bytes per rank, step and layer. Its steps are read one at a
// time, and again by each walk over Record.Steps; what all of them have in common,
// such as the sums by layer, is found once. The other formats are read whole.
//
// Imbalance then computes the balance of each step and layer, compares it with
// the floor and with chance, and averages over the steps last.
package counts
