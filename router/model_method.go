package router

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// when is the value where it is known, else nil.
func when(known, value bool) *bool {
	if !known {
		return nil
	}
	return &value
}

// is reports whether a value is known, and that.
func is(value *bool, want bool) bool { return value != nil && *value == want }

// scores is the scoring function that the fields name, "" where they do not.
func (c modelConfig) scores() string {
	switch name := cmp.Or(c.Scoring, c.OtherScoring); {
	case name != "" || c.Sigmoid == nil:
		return name
	case *c.Sigmoid:
		return sigmoidScores
	}
	return softmaxScores
}

// saysBias is whether the fields say that a correction bias is added.
func (c modelConfig) saysBias() *bool {
	return cmp.Or(c.Biased, when(c.TopKMethod != "", c.TopKMethod == "noaux_tc"))
}

// setMethod finds how tokens choose their experts. What the config spells out comes first;
// the family fills in the rest. Where neither says whether a bias is added to sigmoid scores,
// groups and scaling factors do: only routers with a bias have them.
func (c modelConfig) setMethod(m *Model) error {
	family, topK := families[c.family()], c.TopKMethod
	scores := cmp.Or(c.scores(), family.rule().scores)
	sigmoid, deepSeek := scores == sigmoidScores, topK != "" || c.Groups != 0
	bias := cmp.Or(c.saysBias(), when(family != "", scores == family.rule().scores && family.Biased()),
		when(scores == sqrtSoftplusScores || sigmoid && (deepSeek || c.Scale != nil), true))
	normalized := cmp.Or(c.Normalized, when(family != "", family != Default && family != Llama4),
		when(is(bias, true), true))
	m.Bias = is(bias, true)
	switch {
	case topK != "" && !slices.Contains([]string{"greedy", "group_limited_greedy", "noaux_tc"}, topK):
		return unsupported("topk_method %q", topK)
	case topK == "group_limited_greedy" && m.Grouped():
		return unsupported("topk_method %q (groups scored by their best softmax probability)", topK)
	case scores == softmaxScores && m.Bias:
		return unsupported(softmaxBias)
	case sigmoid && !m.Bias && c.Groups > 1:
		return unsupported("groups of sigmoid scores without a bias")
	case scores == sqrtSoftplusScores:
		m.Method = DeepSeekV4
	case sigmoid && m.Bias && !m.Grouped() && (family == MiniMax2 || family != DeepSeekV3 && !deepSeek):
		m.Method = MiniMax2
	case sigmoid && m.Bias:
		m.Method = DeepSeekV3
	case sigmoid && is(normalized, true):
		m.Method = SigmoidRenorm
	case sigmoid && is(normalized, false) && is(bias, false):
		m.Method = Llama4
	case scores == softmaxScores && is(normalized, true) && family == Renormalize:
		m.Method = Renormalize
	case scores == softmaxScores && is(normalized, true):
		m.Method = RenormalizeNaive
	case scores == softmaxScores && is(normalized, false):
		m.Method = Default
	default:
		return fmt.Errorf("its routing method is not known, and scoring_func %q with topk_method %q does not tell it: name "+
			"it with --method", c.scores(), topK)
	}
	return nil
}

const softmaxBias = "a bias on softmax scores"

func unsupported(format string, args ...any) error {
	return fmt.Errorf("routes by "+format+", which is not supported", args...)
}

// families are the routing methods of model types, where their configs do not say
// otherwise.
var families = func() map[string]Method {
	table := map[string]Method{}
	for method, names := range map[Method]string{
		Renormalize: "gptoss mixtral granitemoe granitemoeswa granitemoeshared granitemoehybrid aria jetmoe cohere2moe " +
			"openaiprivacyfilter moondream3",
		Default: "qwen2moe qwen3moe qwen3omnimoetalker olmoe flexolmo jamba deepseekv2 deepseekocr2 unlimitedocr step3",
		RenormalizeNaive: "qwen3next qwen3vlmoe qwen3omnimoe qwen35moe qwen4exp hunyuanv1moe minimax mistral4 " +
			"mistrallarge4 mistrallarge3 mistral mellum gemma4 diffusiongemma dbrx laramini bailingmoe sdarmoe interns2mobius",
		Llama4:        "llama4",
		SigmoidRenorm: "flint panguultramoe",
		DeepSeekV3: "deepseekv3 deepseekv32 kimik2 kimik25 kimilinear glm4moe glm4moelite glm4vmoe glmmoedsa glm5next " +
			"dots1 dots3note axk1 axk2 beam exaonemoe solaropen hyv4 hyv4vl mimov2flash bailinghybrid nemotronh",
		MiniMax2:   "minimaxm2 minimaxm3 minimaxm3vl hyv3 lfm2moe afmoe laguna musespark inkling2 step3p5 step3p7",
		DeepSeekV4: "deepseekv4",
	} {
		for _, name := range strings.Fields(names) {
			table[name] = method
		}
	}
	return table
}()

// aliens names the routers of families that are none of the methods.
var aliens = map[string]string{
	"phimoe": "the sparse mixer", "ernie45moe": softmaxBias, "ernie45vlmoe": softmaxBias,
	"kolibri1": "a bias on its logits",
	"doge":     "product keys, which score pairs of experts", "zaya": "a skip expert behind the routed ones",
	"switchtransformers": capacity, "nllbmoe": capacity,
}

const capacity = "experts of limited capacity, which drop tokens"

// alien is an error about a model that routes by none of the methods; beyond reports that no balanced logits
// can drive it, whatever method is named: more than one logit chooses each of its experts.
func (c modelConfig) alien() (beyond bool, err error) {
	family := c.family()
	switch {
	case c.ZeroExperts > 0:
		return true, unsupported("%d zero experts (zero_expert_num), which take tokens off the routed ones", c.ZeroExperts)
	case c.SharedSink:
		return true, unsupported("logits of shared experts beside those of the routed ones (shared_expert_sink)")
	case c.Cap > 0:
		return false, unsupported("logits capped at %g (moe_router_logit_softcapping)", c.Cap)
	case c.Power != 0 && c.Power != 1:
		return false, unsupported("weights divided by their %g-norm (moe_normalize_expert_weights)", c.Power)
	case aliens[family] != "":
		return slices.Contains([]string{"doge", "zaya", "switchtransformers", "nllbmoe"}, family), unsupported(aliens[family])
	}
	return false, nil
}

// family is the name in the tables above of the model's type, or of its architecture where
// the type is in none of them: "qwen35moe" for qwen3_5_moe_text and Qwen3_5MoeForCausalLM.
func (c modelConfig) family() string {
	for _, name := range append([]string{c.ModelType}, c.Architectures...) {
		name, _, _ = strings.Cut(strings.NewReplacer("_", "", "-", "", ".", "").Replace(strings.ToLower(name)), "forc")
		name = strings.TrimSuffix(strings.TrimSuffix(name, "model"), "text")
		if families[name] != "" || aliens[name] != "" {
			return name
		}
	}
	return ""
}
