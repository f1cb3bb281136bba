package bench

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/bench/points"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// Spec is everything that defines a campaign. It is stored before the first
// launch and does not change afterwards.
type Spec struct {
	Design    Design    `json:"design"`
	Treatment Treatment `json:"treatment" flag:"treatment" preset:"trtllm"`
	Command   Command   `json:"command"`
	// Arms are what sets an arm apart beside the treatment. One that is neither normal nor
	// perfect is a further arm, and runs with the learned router.
	Arms []ArmSpec `json:"arms,omitempty" flag:"arm"`
	// Builds name two arms that stand in the places of normal and perfect, with no treatment
	// and no proof: two releases, or an option on and off.
	Builds gain.Builds    `json:"builds"`
	Points *points.Points `json:"points,omitempty" flag:"points"`
	// Folder is where commands run, and what relative paths start from; empty is
	// the current folder.
	Folder string `json:"folder"`

	// Metric is the one that decides; empty means the output's own primary one.
	Metric string `json:"metric"`
	// numbers to read by rules of the user's own, as metrics.ParseCustom reads them
	Custom []string `json:"custom,omitempty"`
	// Output is the file that holds the results, with placeholders; empty means
	// the command's stdout.
	Output string `json:"output,omitempty" flag:"result"`

	// Counts is where each launch records its expert loads, with placeholders;
	// Host.Counts reads them, and they prove how it was routed.
	Counts string `json:"counts,omitempty" flag:"counts"`

	// ranks that must prove the treatment; 0: those that the report names, else those seen
	Ranks int `json:"ranks" flag:"ranks"`
	// Threshold is the gain that counts as significant, as a fraction.
	Threshold float64 `json:"threshold" flag:"threshold" in:"%" preset:"10%"`

	Timeout time.Duration `json:"timeout_ns" flag:"timeout"` // of a launch; 0 is none

	// Typed are the words by which bench was told all this, but for the treatment and the design: next steps
	// repeat them.
	Typed []string `json:"typed,omitempty"`
}

// Check reports what is wrong with s, before anything is started.
func (s Spec) Check() error {
	if err := cmp.Or(s.Design.Check(), s.Treatment.Check(), s.Command.check(s.Treatment),
		s.Treatment.CheckEngine(s.Command.engine()), s.checkArms(), s.CheckWithin()); err != nil {
		return err
	}
	switch {
	case s.Points != nil && !in(s.Command.Normal, s.Points.Name) && !s.perLaunch():
		return fmt.Errorf("--points %s: the command has no {%[1]s}: write it where the value goes", s.Points.Name)
	case s.Output != "" && !strings.Contains(filepath.Clean(s.Output), "{out}"), // {out}/../x is every launch's
		s.Counts != "" && !strings.Contains(filepath.Clean(s.Counts), "{out}"):
		return fmt.Errorf("a file that launches write needs {out} in its path, so that no launch overwrites another's")
	case s.Ranks < 0 || s.Ranks > router.MaxExperts:
		return fmt.Errorf("--ranks %d: want 0 to %d", s.Ranks, router.MaxExperts)
	}
	return nil
}

// custom reads the rules of Custom.
func (s Spec) custom() (rules []metrics.Custom, err error) {
	for _, text := range s.Custom {
		rule, err := metrics.ParseCustom(text)
		if err != nil {
			return nil, err
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// Treatment is how the arms differ: variables of the environment, and how a launch
// shows that they took effect.
type Treatment struct {
	Name    string            `json:"name"`
	Perfect map[string]string `json:"perfect"` // variables set in the perfect arm and removed in the normal one
	// Off is the value a launcher passes in the normal arm, where it must pass
	// one: "0", or empty for "leave it out".
	Off string `json:"off"`
	// Line is a regular expression of the line that a rank prints when the
	// treatment takes effect. A group named "rank" holds the rank's number, one named
	// "ranks" how many there are.
	Line string `json:"line,omitempty"`
	// Failed is a regular expression of the line that says that it failed.
	Failed string `json:"failed,omitempty"`
	// Each are variables of both arms, whose values may hold placeholders.
	Each map[string]string `json:"each,omitempty"`
	// Records is the folder below {out} where every launch then records its expert
	// loads, in place of Spec.Counts, and JSON files in which Line is searched as in
	// the logs. Without loads the launch counts, and its balance is claimed at most.
	Records string `json:"records,omitempty"`
	// Switches says that a launch changes its router while it runs: it follows
	// MOEBALANCE_CONTROL.
	Switches bool `json:"switches,omitempty"`
	// Flags follow the server, or the command where there is none, in the perfect arm.
	Flags []string `json:"flags,omitempty"`
	// Silent says that the engine prints nothing of its switch, so without counts its balance is its command's claim.
	Silent bool `json:"silent,omitempty"`
	// Random routing is even only on average.
	Random bool `json:"random,omitempty"`
}

// treatments are those known by name. Sources: the engines' own switches, as
// tensorrt_llm/_torch/moe/fused_moe/interface.py,
// vllm/model_executor/layers/fused_moe/router/routing_simulator_router.py,
// sglang/srt/layers/moe/topk.py, lmdeploy/pytorch/models/deepseek_v2.py and the options of vllm-ascend, ATOM
// (pull request 1755) and LightLLM (961) read them. TensorRT-LLM reads the first name; of what it spawns, ranks see
// only names that begin with TRTLLM or TLLM, from which wrappers such as InferenceX's restore it.
var treatments = []Treatment{
	{
		Name:    "trtllm",
		Perfect: map[string]string{"ENABLE_PERFECT_ROUTER": "1", "TRTLLM_ENABLE_PERFECT_ROUTER": "1"},
		Off:     "0",
		Line:    `Precomputing perfect router logits for \d+ common batch sizes(?: \(ep_rank=(?P<rank>\d+)\))?`,
		Failed:  `Failed to precompute logits`,
	},
	{Name: "vllm", Perfect: map[string]string{"VLLM_MOE_ROUTING_SIMULATION_STRATEGY": "uniform_random"}, Silent: true,
		Random: true},
	{
		Name:    "hook", // package hook's
		Perfect: map[string]string{"ENABLE_PERFECT_ROUTER": "1"},
		Off:     "0",
		Line:    `moebalance hook: rank (?P<rank>\d+) of (?P<ranks>\d+) routes \d+ layers by perfect`,
		Each:    map[string]string{"MOEBALANCE_COUNTS": "{out}/counts"},
		Records: "counts", Switches: true,
	},
	{Name: "sglang", Perfect: map[string]string{"SGLANG_SIMULATE_ROUND_ROBIN_EXPERTS": "1"}, Off: "0", Silent: true},
	{Name: "vllm-ascend", Perfect: map[string]string{"VLLM_ASCEND_ENABLE_W4A8_MXFP_FORCE_LOAD_BALANCE": "1"}, Off: "0",
		Silent: true, Random: true},
	{Name: "lmdeploy", Perfect: map[string]string{"LMDEPLOY_FAKE_EPLB": "true"}, Off: "false", Silent: true},
	{Name: "atom", Flags: []string{"--fake-eplb"}, Silent: true},
	{Name: "lightllm", Flags: []string{"--enable_ep_fake_balance"}, Silent: true, Random: true},
}

// engines are the programs and Python modules of engines, with the treatments whose switch works in each.
var engines = map[string][]string{
	"trtllm-bench": {"trtllm"}, "trtllm-serve": {"trtllm"}, "trtllm-eval": {"trtllm"}, "trtllm-llmapi-launch": {"trtllm"},
	"tensorrt_llm": {"trtllm"}, "vllm": {"atom", "vllm", "vllm-ascend", "hook"}, "sglang": {"atom", "sglang", "hook"},
	"atom": {"atom"}, "lmdeploy": {"lmdeploy"}, "lightllm": {"lightllm"},
}

// CheckEngine refuses a command of an engine that the treatment does not switch, where it switches engines of its own.
func (t Treatment) CheckEngine(words []string) error {
	program := launch.Program(words)
	known := slices.Concat(slices.Collect(maps.Values(engines))...)
	if fit := engines[program]; len(fit) > 0 && slices.Contains(known, t.Name) && !slices.Contains(fit, t.Name) {
		return fmt.Errorf("--treatment %s switches nothing in %s: want --treatment %s", t.Name, program,
			strings.Join(fit, " or "))
	}
	return nil
}

// ParseTreatment reads a treatment's name, or "env:NAME=VALUE" for one of the
// user's own.
func ParseTreatment(s string) (Treatment, error) {
	var names []string
	for _, t := range treatments {
		if t.Name == s {
			return t, nil
		}
		names = append(names, t.Name)
	}
	rest, own := strings.CutPrefix(s, "env:")
	name, value, ok := strings.Cut(rest, "=")
	if !own || !ok || name == "" {
		return Treatment{}, fmt.Errorf("unknown treatment %q: want %s or env:NAME=VALUE", s, strings.Join(names, ", "))
	}
	return Treatment{Name: s, Perfect: map[string]string{name: value}}, nil
}

// Check reports what is wrong with t.
func (t Treatment) Check() error {
	for _, name := range t.Names() {
		if !launch.VariableName.MatchString(name) {
			return fmt.Errorf("%q cannot be the name of an environment variable", name)
		}
		if t.Perfect[name] == t.Off {
			return fmt.Errorf("%s=%q is the same in both arms", name, t.Off)
		}
	}
	if _, err := regexp.Compile(t.Line); err != nil {
		return fmt.Errorf("--proof: %w", err)
	}
	return nil
}

// Chance reports whether the treatment routes at random, which is even only on average.
func (t Treatment) Chance() bool {
	strategy := t.Perfect["VLLM_MOE_ROUTING_SIMULATION_STRATEGY"]
	return t.Random || strategy == "uniform_random" || strategy == "normal_routing" ||
		t.Perfect["SGLANG_SIMULATE_UNIFORM_EXPERTS"] != ""
}

// said is the switch as a claim of its command: "SGLANG_SIMULATE_ROUND_ROBIN_EXPERTS=1"; empty where the engine has a
// word of its own.
func (t Treatment) said() string {
	if !t.Silent {
		return ""
	}
	return strings.Join(launch.Environ(t.Flags, t.Perfect), " ")
}

// Names are the variables of the treatment, sorted.
func (t Treatment) Names() []string { return slices.Sorted(maps.Keys(t.Perfect)) }
