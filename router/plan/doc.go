// Package plan assigns the slots of one layer and step to experts: a balanced
// plan, TensorRT-LLM's two reference plans, a random one, and what SGLang and
// vLLM do for benchmarks. Its certificates count any plan against floors that no
// assignment can beat. It writes no logits and knows no files.
package plan
