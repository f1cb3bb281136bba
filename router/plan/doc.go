// Package plan assigns the slots of one layer and step to experts: a balanced
// plan, TensorRT-LLM's two reference plans, and a random one. Its
// certificates count any plan against floors that no assignment can beat. It
// writes no logits and knows no files.
package plan
