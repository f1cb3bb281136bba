// Package logits turns plans into router logits and keeps them: for one rank and
// one batch size, a matrix for which the model's own routing method picks
// exactly the experts of the plan, all with the same weight.
//
//	c, err := logits.Open(dir, logits.Spec{Model: "deepseek-v3", Gate: gate, Layout: layout, Mode: router.DEP})
//	list, err := c.Fill(ctx, "diagonal", []int{logits.AnyTokens}, nil)
//	v, err := logits.Verify(ctx, dir, nil)
//
// A batch size is the number of tokens on every rank. The ranks are balanced
// together, so an entry is for its batch size; a periodic entry serves any.
//
// A cache is a folder for one Spec. Its manifest.json holds the spec, and its entries are
// safetensors files named after their plan, rank and batch size. An entry follows from the
// manifest and its name alone: verifying makes it anew and compares the bytes, so that no
// entry has to say what it is for, and nothing that it says has to be trusted.
//
// Files are written aside and renamed: whatever happens to their writer, a file is
// whole or absent. What happens to it later, such as a power cut before it is on disk, is
// found by verifying, and by filling the cache again, which replaces what is damaged.
// Nothing in this package needs a lock to read.
//
// The package stands on router, which knows how experts are chosen; it does not
// know where tokens come from or what the engine does with the logits.
package logits
