// Package counts reads the expert statistics that inference engines record and
// turns them into loads: slots per expert, by step and layer.
//
// Every engine has a format of its own, most have several, and they differ in
// what a number means: slots a rank sent or received, logical experts or
// physical copies, one step or a window of them. What a file does not say
// stays unknown; what cannot be read is refused by name.
//
// Whatever the file, a number goes one way. A document is its container: JSON, numpy.save, torch.save, safetensors,
// a text, or a folder of them. JSON and binary files are trees; a line of a log is an object like theirs, and a row of
// a table is the numbers that its columns name. What fields are called says what they are: numbers (step, layer,
// expert, …), or payloads, under which arrays with named axes (Axes) stand. One walk and one collector make the steps
// of a Record of them, with one set of checks. What cannot be read ends the reading from wherever it stands, by a
// fault; its place is kept while reading.
//
// ReadPlacement reads files that say which rank holds which expert; package placement writes them.
//
// A record holds experts × 8 bytes per step and layer, of all ranks together, at most 2 GiB.
//
// Imbalance takes the loads through compare/imbalance, with the null of random
// routing beside them. Prefill and decode are different workloads: Phases separates
// them where the format does.
package counts
