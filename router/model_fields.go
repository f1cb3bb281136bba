package router

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// modelConfig are the fields of a config.json by what they mean. A tag matches the names that families
// give a field; values of one meaning that contradict each other are refused. A pointer is nil where no
// field is there, or null.
type modelConfig struct {
	Experts       same     `is:"(n_routed|num_local|num|moe_num|num_moe|num_routed)_experts"`
	ModelType     string   `is:"model_type"`
	Architectures []string `is:"architectures"`

	TopK same `is:"((num|moe)_)?experts_per_tok(en)?|moe_((router_)?top_?)?k|(num_selected|n_activated|top_k)_experts"`

	Groups      same   `is:"n_group|num_expert_groups?|n_expert_groups|moe_router_num_groups"`
	TopKGroups  same   `is:"topk_group|n_limited_groups|num_expert_groups_per_tok|moe_router_group_topk"`
	GroupedTopK *bool  `is:"use_grouped_topk"`
	TopKMethod  string `is:"topk_method"`

	Scoring string `is:"scor(e|ing)_func|((moe_)?router_)?score_function|moe_router_activation(_func)?"`

	OtherScoring string   `is:"expert_selection_fn|moe_gate_act"`
	Sigmoid      *bool    `is:"moe_router_use_sigmoid"` // in the place of a name
	Biased       *bool    `is:"use_(routing|expert|moe_router)_bias|(moe_)?router_enable_expert_bias|moe_use_aux_free"`
	Normalized   *bool    `is:"norm_topk_prob|moe_renormalize|route_norm|norm_expert_weight"`
	Scale        *float64 `is:"(moe_)?route[dr](_topk)?_scaling_factor|routed?_scale"`

	Depth      same     `is:"num_hidden_layers"`
	OtherDepth same     `is:"n_layers?|num_layers"` // LongCat counts each layer twice in the first
	Further    same     `is:"num_nextn_predict_layers"`
	MLPTypes   []string `is:"mlp_layer_types"`
	Types      []string `is:"layers_block_type"`
	OtherTypes []string `is:"layer_types"`
	Pattern    string   `is:"hybrid_override_pattern"` // a letter each, E for experts
	Hash       *same    `is:"num_hash_layers|n_hash_layers"`
	First      same     `is:"first_k_dense_replace|n(um)?_dense_layers|moe_(layer_(num_skipped|start_index)|start_layer)"`
	Last       *same    `is:"moe_layer_end_index"`
	Never      numbers  `is:"mlp_only_layers"`
	Only       numbers  `is:"moe_layers(_enum)?"`
	Mask       numbers  `is:"is_moe_layer"`
	// every how many layers experts stand: in the first of them, or a mask; in the last of them
	Every     numbers `is:"moe_layer_freq|route_every_n|expert_layer_period"`
	Offset    same    `is:"expert_layer_offset"`
	EveryLast same    `is:"decoder_sparse_step|interleave_moe_layer_step|moe_layer_interval"`

	ZeroExperts same    `is:"zero_expert_num"`
	SharedSink  bool    `is:"shared_expert_sink"`
	Cap         float64 `is:"moe_router_logit_softcapping"`
	Power       float64 `is:"moe_normalize_expert_weights"`
}

// textFields hold the language model of a multimodal one, or its experts alone.
var textFields = []string{"text_config", "thinker_config", "language_config", "llm_config", "ffn_config", "moe"}

// mostNested is how deep a language model may stand: thinker_config.text_config is two.
const mostNested = 4

// readFields reads a config.json. The fields of the language model take the place of the fields around it, but for the
// number of experts, in which both must agree.
func readFields(text []byte) (c modelConfig, err error) {
	var fields map[string]json.RawMessage
	finite := notFinite.ReplaceAllFunc(text, func(found []byte) []byte {
		if found[0] == '"' {
			return found
		}
		return []byte(`"` + string(found) + `"`)
	})
	if err := json.Unmarshal(finite, &fields); err != nil {
		return c, fieldError("the file", text, err)
	}
	for range mostNested {
		i := slices.IndexFunc(textFields, func(name string) bool {
			value := string(fields[name])
			return strings.HasPrefix(value, "{") || name == textFields[0] && value != "" && value != "null"
		})
		if i < 0 {
			break
		}
		name, inner := textFields[i], maps.Clone(fields)
		if name == "moe" && fields["model_type"] == nil { // Mistral's params.json
			fields["model_type"] = json.RawMessage(`"mistral"`)
		}
		delete(inner, name)
		if err := json.Unmarshal(fields[name], &inner); err != nil {
			return c, fieldError(name, fields[name], err)
		}
		var outer, within modelConfig
		_, _ = outer.fill(fields), within.fill(inner) // what is wrong is told of the innermost
		if outer.Experts != 0 && outer.Experts != within.Experts {
			return within, fmt.Errorf("%d experts, and %d in %s, contradict each other", outer.Experts, within.Experts, name)
		}
		if of := string(inner["model_type"]); of == "" || of == `""` || of == "null" {
			inner["model_type"] = fields["model_type"]
		}
		if fields["architectures"] != nil {
			inner["architectures"] = fields["architectures"]
		}
		fields = inner
	}
	return c, c.fill(fields)
}

// notFinite matches texts, and the numbers that Python writes and JSON has not; as texts these are no numbers.
var notFinite = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?\bInfinity\b|\bNaN\b`)

var meanings = sync.OnceValue(func() (patterns []*regexp.Regexp) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[modelConfig]()) {
		patterns = append(patterns, regexp.MustCompile("^(?:"+f.Tag.Get("is")+")$"))
	}
	return patterns
})

// fill fills the fields with the values of their names. A wrong one is passed over, and the first is an error.
func (c *modelConfig) fill(values map[string]json.RawMessage) (wrong error) {
	names := slices.Sorted(maps.Keys(values))
	for i, meaning := range meanings() {
		field, said := reflect.ValueOf(c).Elem().Field(i), ""
		for _, name := range names {
			value, v := values[name], reflect.New(field.Type())
			if !meaning.MatchString(name) || value == nil || string(value) == "null" {
				continue
			}
			switch err := json.Unmarshal(value, v.Interface()); {
			case err != nil:
				wrong = cmp.Or(wrong, fieldError(name, value, err))
			case said != "" && !reflect.DeepEqual(v.Elem().Interface(), field.Interface()):
				wrong = cmp.Or(wrong, fmt.Errorf("%s %.40s and %s %.40s contradict each other", said, values[said],
					name, value))
			default:
				field.Set(v.Elem())
				said = name
			}
		}
	}
	return wrong
}

// same is a number, or a list over layers whose entries are all that number.
type same int

// UnmarshalJSON reads a number, or a list of one float64 repeated.
func (s *same) UnmarshalJSON(b []byte) error {
	var list []int
	if err := json.Unmarshal(b, &list); err != nil {
		return json.Unmarshal(b, (*int)(s))
	}
	for _, n := range list {
		if n != list[0] {
			return fmt.Errorf("want the same in every layer, have %d and %d", list[0], n)
		}
		*s = same(n)
	}
	return nil
}

// numbers are a list of whole numbers: [0, 1], [false, true], "0,1" or 1.
type numbers []int

var listed = regexp.MustCompile(`[^\s,"\[\]]+`)

// UnmarshalJSON reads a list.
func (n *numbers) UnmarshalJSON(b []byte) error {
	for _, word := range listed.FindAllString(string(b), -1) {
		v, err := strconv.Atoi(strings.NewReplacer("true", "1", "false", "0").Replace(word))
		if err != nil {
			return fmt.Errorf("want a list of whole numbers, have %.40s", b)
		}
		*n = append(*n, v)
	}
	return nil
}

// fieldError names the field of a wrong type without the words of Go.
func fieldError(name string, value []byte, err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		want := map[reflect.Kind]string{reflect.Int: "a whole number", reflect.Float64: "a number", reflect.Slice: "a list",
			reflect.String: "a text", reflect.Bool: "true or false", reflect.Map: "an object"}[wrong.Type.Kind()]
		err = fmt.Errorf("want %s, have %.40s", want, value)
	}
	return fmt.Errorf("%s: %w", name, err)
}
