// Package safetensors reads and writes the safetensors format: an 8-byte
// little-endian header length, a JSON header, and the tensors' bytes.
//
// The reader is strict and bounded. It needs random access and the size, checks
// that the header accounts for every byte of the file exactly once, and only
// then lets a tensor be read: a file cut anywhere, or one byte too long, is an
// error. The writer aligns the header to 8 bytes, as the reference
// implementation (huggingface/safetensors, safetensors/src/tensor.rs) does, so
// that safetensors.torch.load_file and every other reader accept the result.
//
//	tensors, err := safetensors.Parse("rank0.safetensors", text)
//	for _, t := range tensors {
//		err = safetensors.DecodeIntegers(counts, t.Data, t.DType)
//	}
package safetensors
