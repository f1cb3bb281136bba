// Package logits turns plans into router logits and keeps them: for one rank and
// one batch size, a matrix for which the model's own routing method picks
// exactly the experts of the plan, all with the same weight.
//
//	c, err := logits.Open(dir, logits.Spec{Model: "deepseek-v3", Gate: gate, Layout: layout, Mode: router.DEP})
//	e, err := c.Get(rank, 8) // read from the cache, or made and kept
//	row := e.Row(nil, 0)       // float32 [experts]
//
// A batch size is the number of tokens on every rank. The ranks are balanced
// together, so an entry is for its batch size. A rank that holds another number of
// tokens than the others asks for the entry of its own number; the loads are then as
// even as the plan's certificate for those numbers says. A rank without tokens has an
// entry of no rows.
//
// A cache is a folder of safetensors files, one per rank and batch size. Each
// says in its metadata all that it depends on, and is named after that, so that
// two models, layouts, batch sizes or element types never share a file.
// Files are written aside and renamed: whatever happens to their writer, an entry is
// whole or absent. What happens to it later, such as a power cut before it is on disk, is
// found, by its checksum when it is read and byte for byte when the cache is filled again,
// which replaces what is damaged. Nothing in this package needs a lock to read.
//
// The package stands on router, which knows how experts are chosen; it does not
// know where tokens come from or what the engine does with the logits.
package logits
