// Package counts reads the expert statistics that inference engines record and
// turns them into loads: slots per expert, by step and layer.
//
// Every engine has a format of its own, most have several, and they differ in
// what a number means: slots a rank sent or received, logical experts or
// physical copies, one step or a window of them. What a file does not say
// stays unknown; what cannot be read is refused by name.
//
// The way of a number: openDocument opens the container (JSON, numpy.save, torch.save, a text, a
// folder); the first row of formats that matches it, by content and never by name alone, reads
// it as objects, an array, rows or lines. Objects of JSON and of pickles, of all engines, are walked in one way: what
// one says of its step, layer and kind holds for all below it, and payloads are the keys of what is counted. All
// readers gather cells of (step, layer, kind) in one collector, which makes the steps of a Record. Phases and Between
// are other records of the same kind.
// ReadPlacement reads files that say which rank holds which expert.
//
// A record holds experts × 8 bytes per step and layer, of all ranks together, at most 2 GiB.
//
// Imbalance takes the loads through compare/imbalance, with the null of random
// routing beside them. Prefill and decode are different workloads: Phases separates
// them where the format does.
package counts
