package router

import (
	"fmt"
	"math"
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

// rule is how a method chooses and weighs.
type rule struct {
	method  Method
	scores  string // the function of a logit, by its name in configs
	byLogit bool   // chooses by the logit itself, and takes its score as the weight alone
	biased  bool   // adds a correction bias when it chooses, and scales its weights
	shared  bool   // divides weights by their sum
}

// The functions of a logit, by their names in the scoring_func of configs.
const (
	softmaxScores      = "softmax" // over all experts; over the chosen ones where a method chooses by logit
	sigmoidScores      = "sigmoid"
	sqrtSoftplusScores = "sqrtsoftplus"
)

var rules = []rule{
	{method: Default, scores: softmaxScores},
	{method: Renormalize, scores: softmaxScores, byLogit: true},
	{method: RenormalizeNaive, scores: softmaxScores, shared: true},
	{method: DeepSeekV3, scores: sigmoidScores, biased: true, shared: true},
	{method: DeepSeekV4, scores: sqrtSoftplusScores, biased: true, shared: true},
	{method: Llama4, scores: sigmoidScores, byLogit: true},
	{method: MiniMax2, scores: sigmoidScores, biased: true, shared: true},
	{method: SigmoidRenorm, scores: sigmoidScores, shared: true},
}

// rule is the method's row of the table, without a method for an unknown one.
func (m Method) rule() rule {
	for _, r := range rules {
		if r.method == m {
			return r
		}
	}
	return rule{}
}

// ParseMethod reads a method's name, in any case. The error lists the names.
func ParseMethod(s string) (Method, error) {
	var names []string
	for _, r := range rules {
		if strings.EqualFold(s, string(r.method)) {
			return r.method, nil
		}
		names = append(names, string(r.method))
	}
	return "", fmt.Errorf("unknown routing method %q: want one of %s", s, strings.Join(names, ", "))
}

// Biased reports whether the method adds a correction bias when it chooses,
// and multiplies its weights by a scaling factor.
func (m Method) Biased() bool { return m.rule().biased }

// groupLimited reports whether the method obeys a shape's groups.
func (m Method) groupLimited() bool { return m == DeepSeekV3 }

// Score is what a method makes of one logit, before any bias: its sigmoid, or the square
// root of its softplus. It is a real function in float64; routers round it to float32 once,
// where GPU kernels round several times and may differ in the last bit.
func (m Method) Score(logit float32) float64 { return m.rule().score(logit) }

func (r rule) score(x float32) float64 {
	if r.scores == sqrtSoftplusScores { // at least 0 and, for large x, about √x
		return math.Sqrt(math.Max(float64(x), 0) + math.Log1p(math.Exp(-math.Abs(float64(x)))))
	}
	return 1 / (1 + math.Exp(-float64(x))) // in [0, 1]; as a float32 exactly 1 from about x = 17.4 on
}
