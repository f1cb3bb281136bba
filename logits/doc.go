// Package logits turns plans into router logits and keeps them: for one rank and
// one batch size, a matrix for which the model's own routing method picks
// exactly the experts of the plan, all with the same weight.
//
//	c, err := logits.Open(dir, logits.Spec{Model: "deepseek-v3", Gate: gate, Layout: layout, Mode: router.DEP})
//	e, err := c.Get(rank, logits.Equal(8)) // read from the cache, or made and kept
//	row := e.Row(nil, 0)                   // float32 [experts]
//
// A batch size is the number of tokens on every rank, or one for each of them:
//
//	e, err := c.Get(rank, logits.Unequal(9, 2, 0, 5))
//
// Ranks are balanced together, so what a rank with 9 tokens routes depends on
// what the others hold: an entry is for its whole batch. (An engine that knows
// its own tokens only may ask for the equal batch; its ranks are then even as far
// as they do hold the same number.) A rank without tokens has an entry of no
// rows, so that it can be asked for like any other and none of the batch is
// missing.
//
// A cache is a folder of safetensors files, one per rank and batch size. Each
// says in its metadata all that it depends on, and is named after that, so that
// two models, layouts, batches or element types can never meet in one file.
// Files are written aside, synced and renamed: whatever happens to their writer, an
// entry is whole or absent. What happens to it later is found, by its checksum when
// it is read and byte for byte when the cache is filled again, which replaces what is
// damaged. Nothing in this package needs a lock to read.
//
// The package stands on router, which knows how experts are chosen; it does not
// know where tokens come from or what the engine does with the logits.
package logits
