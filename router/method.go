package router

import (
	"fmt"
	"strings"
)

// Method is how a gate turns logits into chosen experts and combine weights.
// The values are TensorRT-LLM's names. Its numbers are not used anywhere: they
// changed between releases and differ from FlashInfer's and vLLM's.
//
// In the table x is a logit, b the correction bias of its expert, F the scaling
// factor, σ the logistic function, and ε = 1e-20:
//
//	method            chooses the k largest of     weight of a chosen expert
//	Default           softmax(x) over all E        that probability
//	Renormalize       x                            softmax over the k chosen x
//	RenormalizeNaive  softmax(x) over all E        p / Σ chosen p
//	DeepSeekV3        σ(x)+b, best groups only     σ(x) / (Σ chosen σ + ε) · F
//	DeepSeekV4        √softplus(x) + b             s / (Σ chosen s + ε) · F
//	Llama4            x                            σ(x)
//	MiniMax2          σ(x)+b                       σ(x) / (Σ chosen σ + ε) · F
//	SigmoidRenorm     σ(x)                         σ(x) / (Σ chosen σ + ε)
//
// DeepSeekV3 with groups first scores each group by the sum of its two largest
// σ(x)+b (its only one when groups hold a single expert), keeps the TopKGroups
// best groups, and chooses inside them.
//
// Source: the routing classes of TensorRT-LLM's fused MoE module and its
// noAuxTc kernel; F of MiniMax2 stands in MiniMax-M3.
type Method string

// The methods.
const (
	Default          Method = "Default"
	Renormalize      Method = "Renormalize"
	RenormalizeNaive Method = "RenormalizeNaive"
	DeepSeekV3       Method = "DeepSeekV3"
	DeepSeekV4       Method = "DeepSeekV4"
	Llama4           Method = "Llama4"
	MiniMax2         Method = "MiniMax2"
	SigmoidRenorm    Method = "SigmoidRenorm"
)

// Methods lists the methods in the order of their table.
func Methods() []Method {
	return []Method{Default, Renormalize, RenormalizeNaive, DeepSeekV3, DeepSeekV4, Llama4, MiniMax2, SigmoidRenorm}
}

// ParseMethod reads a method's name, in any case. The error lists the names.
func ParseMethod(s string) (Method, error) {
	names := make([]string, 0, 8)
	for _, m := range Methods() {
		if strings.EqualFold(s, string(m)) {
			return m, nil
		}
		names = append(names, string(m))
	}
	return "", fmt.Errorf("unknown routing method %q: want one of %s", s, strings.Join(names, ", "))
}

// Biased reports whether the method adds a correction bias when it chooses,
// and multiplies its weights by a scaling factor.
func (m Method) Biased() bool {
	return m == DeepSeekV3 || m == DeepSeekV4 || m == MiniMax2
}

// GroupLimited reports whether the method obeys a shape's groups.
func (m Method) GroupLimited() bool { return m == DeepSeekV3 }

// scoring is the function of a logit that a method chooses by.
type scoring int

const (
	byLogit scoring = iota
	bySoftmax
	bySigmoid
	bySqrtSoftplus
)

func (m Method) scoring() scoring {
	switch m {
	case Default, RenormalizeNaive:
		return bySoftmax
	case DeepSeekV3, MiniMax2, SigmoidRenorm:
		return bySigmoid
	case DeepSeekV4:
		return bySqrtSoftplus
	}
	return byLogit
}
