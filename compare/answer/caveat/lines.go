package caveat

// Line is a row of the catalog for one thing that an answer can say first. Numbers, Reasons and Next are the
// names of what follows, in order, each as far as its values are known; of steps with | between them the first.
type Line struct {
	Verdict                string // of the answer; of results that have one the row is for this verdict, or for any
	Text                   string
	Numbers, Reasons, Next string
}

// Parts of several rows.
const (
	under       = "[under {arm}, ]" // the arm that a trace names
	judgedTrace = "gain saved loss worst"
	unevenNext  = "both place|experts measure.hook|measure"
	campaignWhy = "dose checks points share"
	compared    = "gain step alone saved"
	measureNext = "backend|measure.hook|measure"
	flatWhy     = "flat flat_time"
	countsOf    = "reported mean worst floor null"
	placed      = "time fall before after gains"
	placedWhy   = "written decision unpredicted untimed payback"
	busiest     = "[with {redundant:redundant expert} ]the busiest rank's load "
	placedWith  = "[ with {redundant:redundant expert}][: {worth}][ (the busiest rank's load falls by {fall:%})]."
	placedNext  = "time write|keep|gain_placed"
	slowerToo   = "[; rank {slower} takes longer than the others for equal dense GEMMs]."
	foretold    = "[; these traces predict {predicted:speed}]."
	served      = "[; they serve {any}]."
	ofTrace     = "[ · {of_steps} of {step_ns:ns}] · {ranks:rank}[ · {arm_name} arm]"
)

// Lines are the first sentences of answers, by kind of result: the first row whose values are all known is told.
var Lines = map[string][]Line{
	"trace": {
		{"no answer", "no answer: {launches:CUDA graph launch} hide kernels in {hidden:ns} of GPU time.", "", "", "graphs"},
		{"no answer", "no answer: imbalance needs two ranks; {few} was given.", "", "", "alone|all|ranks"},
		{"no answer", "no answer: {doubt}.", "", "remedy", ""},
		{"slower GPU", under + "rank {slow_rank} takes {by:%} longer than the others for equal dense GEMMs: a slower GPU" +
			"[, or {or}].", "dense worst", "slower_gpu", "both gpu"},
		{"late launches", under + "late launches[ on rank {on}] make {whom} wait {stall:ns} per step; {=even_ranks}.",
			"stall " + judgedTrace, "host profiler", "both again"},
		{"attention uneven", under + "attention is {attention:%} uneven over ranks, expert time {experts:%}; {=even_tokens}.",
			"tokens attention " + judgedTrace, "attention", "both tokens"},
		{"uneven", under + "{=slow}; {=even_ranks}.", judgedTrace, "expert wait", unevenNext},
		{"load without time", under + "{=why.flat}.", "gain saved loss load time", "flat_time", "both backend same_run"},
		{"uneven", under + "{uneven}; it is even in {steps}.", "uneven worst", "", unevenNext},
		{"even", under + "expert time is even; late launches make the ranks wait {stall:ns} per step.", judgedTrace,
			"host profiler", "both|balanced|again"},
		{"even", under + "expert time is even; {=left}.", judgedTrace, "wait", "both|balanced|other_load"}},

	"compare": {
		{"not comparable", "{?refusal}{verdict}: {why|the sides are no two arms of one run}" + slowerToo,
			"", "rest", "swapped|one_arm|whole|builds|both_arms trust"},
		{"no answer", "no answer: {doubt}.", compared, "remedy", "whole|" + measureNext},
		{"no verdict", "steps of {other} take {change:%} {less|more} GPU time than steps of {one}.",
			"normal perfect change", "phase", "builds"},
		{"imbalance significant", "{=said}" + foretold, compared, "placement", "place|cause"},
		{"", "{=said}[, below the {bar}]" + foretold, compared, "", "loads|other_load"},
		{"no verdict", "{?time}{=foreseen}" + slowerToo, compared, flatWhy, "backend same_run"},
		{"no verdict", "{=foreseen}" + slowerToo, compared, flatWhy, "small|place|cause measure.hook|measure"},
		{"no verdict", "the perfect side is not balanced: its {of} over ranks has max/mean {there:.3}, the normal side's " +
			"{here:.3}.", compared, flatWhy, measureNext},
		{"no verdict", "no gain shown: balanced routing would change speed by {low:+%} to {high:+%}[ for {steps}]" +
			"[, if both sides did {work}][; late launches hide about {prompt:+%}]" + slowerToo, compared, flatWhy, measureNext},
		{"no answer", "no answer: these traces allow no prediction of the gain.", compared, flatWhy, measureNext}},

	"bench": {
		{"", "{?refusal}{verdict}: {why|a check failed, so the gain decides nothing}.",
			"", "rest", "swapped|trust prove_hook|launched|prove_trt|checks|builds|measure.hook|measure both_arms"},
		{"no verdict", "unfinished, {left} of {all:launch} left[; {=so_far}].", "gain", campaignWhy, "resume"},
		{"", "no decision: launches report the same values{?copied_values}.", "gain", campaignWhy, "checks"},
		{"", "no decision: what fails may choose the result{?first_attempts}.", "gain", campaignWhy, "checks"},
		{"", "no decision: routing cannot explain a gain of {gain:+%}{?implausible_gain}.", "gain", campaignWhy, "checks"},
		{"", "no decision: {few} (of at least {more}).", "gain", campaignWhy, "measure.hook|more"},
		{"inconclusive", "no decision: {far:is launch} far off; {=said}.", "gain", campaignWhy, "measure.hook|more|longer"},
		{"inconclusive", "{=said}.", "gain", "dose needed checks share", "measure.hook|more|longer"},
		{"no verdict", "{n:launch} cannot decide: {=said}.", "gain", campaignWhy, "five"},
		{"equivalent", "{other} and {one} are equally fast, within 1 %.", "gain", campaignWhy, "page builds"},
		{"", "{other} is {gain:speed} than {one}[{place}].", "gain", campaignWhy, "page builds"},
		{"imbalance significant", "{=said}[{=caution}].", "gain", campaignWhy, "page trace place"},
		{"", "{=said}[, below the {below:0%} threshold][{=caution}].", "gain", campaignWhy, "page acted|measure.hook|loads"}},

	"place": {
		{"not now", "{=why.flat}.", "gain load time fall before", "written flat_time", "backend same_run"},
		{"", "not enough evidence: {undecided}.", placed, placedWhy, "same_run|judge"},
		{"", "a step[ ({steps})] would take {step:%} {less|more}" + placedWith, placed, placedWhy, placedNext},
		{"", "throughput would rise by {rise:%}" + placedWith, placed, placedWhy, placedNext},
		{"", busiest + "falls by {fall:%} on unseen traffic[; time unknown{?untimed}]. | " +
			busiest + "does not fall on unseen traffic.", placed, placedWhy, placedNext}},

	"counts": {
		{"uneven", "{part} gets {load:.2} × the mean load[ in {where}][ of {source}]" +
			"[; uneven in {flagged} of {layers:layer}].", countsOf, "experts untimed", "ep|place|measure trace_counts"},
		{"even", "the {level} load is {how}: at most {load:.2} × the mean[ in {where}][ of {source}].", countsOf, "experts",
			"ep|keep"},
		{"no answer", "the engine reports a rank load of {reported:.2} × the mean[ ({phase})], but no counts. | " +
			"no answer: {one_rank|no load is recorded}.", countsOf, "", "counts"}},

	"cache": {
		{"failed", "{bad} of {files:file} in the cache failed.", "", "fault", "agree|rewrite"},
		{"complete", "{exact:is file} exact[{=balance}][; {drawn} drawn by {plan} are uneven on purpose].", "", "", "use"},
		{"complete", "wrote {made:file} for {model} on {ranks:rank}" + served, "", "fault", "verify"},
		{"complete", "all {files:file} for {model} are there" + served, "", "", "verify"}},

	"plans": {{"complete", "as even as whole slots allow at {at}: {even|no plan}.", "", "", "generate"}},
}

// sentences are what verdicts rest on, behind "basis", the reasons of answers, behind "why", and clauses of lines.
var sentences = map[string]string{
	"basis.trace":   "{evidence}" + ofTrace + " | {gpu_ns:ns} of kernels seen" + ofTrace,
	"basis.compare": "[{evidence} ]{of_steps} {together|of one launch per arm} · {ranks:rank}[ · arms {labeled}]",
	"basis.bench":   "{=interval}[ · balance {balance}]",
	"interval": "{refused} | one launch · launch sd of {sd:.1} points assumed | no interval from {alone} | " +
		"interval of {counted} {side} the {threshold:0%} threshold | interval of {counted}[ {side} 0 %]",
	"basis.place": "[learned from {one} · ]{=judged} · {ranks:rank} · baseline: {baseline}",
	"judged": "judged on {kinds:kind} of windows left out in turn · written plan learned from all | " +
		"judged on {windows:other window}[, {alike} of them like a learned one] | judged on no other window",
	"basis.counts": "recorded load over {level}s · {layers:layer}[ of {source}] | " +
		"claimed by the engine over {passes:pass}",
	"basis.cache": "{exact} of {files:file} exact | " +
		"{new} new, {replaced} replaced · {size} · {dtype}, {mode}, plan {plan}",
	"basis.plans": "{basis}",
	"balance":     " and {balanced} | ; {best} of {sizes:is batch size} as balanced as can be",

	"why.flat": "[if the counts are of this {unsure}, ]nothing to do: load is {load:%} uneven, but expert time only " +
		"{time:%}; {=even_ranks}",
	"foreseen": "balanced routing would be about {gain:speed}[ for {steps}][, mostly from {part}][, as {part2} " +
		"{saved:ns} and {part3} {cost:ns} per step][, if both sides did {work}][; below the {bar}]",
	"even_ranks":  "even ranks would gain {=much}[ in {steps}][ in steps ({traced})] | what that costs is unknown",
	"even_tokens": "even tokens would gain about {token_gain:%}[ in {steps}] | what that costs is unknown",
	"left":        "{=much} is left to gain[ in {steps}] | what is left to gain is unknown",
	"much":        "{even:%} to {most_gain:%} | {?little}under 0.1 % | about {even:%}",
	"slow": "the slowest rank changes in {changing} | rank {rank} is {how}[{most}] in {where} | " +
		"expert time is uneven[{most}] in {where}",

	"why.slower_gpu": "no load does that; the gain of balance is unknown until rank {slow_rank} is as fast",
	"why.attention":  "data-parallel ranks hold unequal tokens: they differ in dense GEMMs, not in experts",
	"why.flat_time":  "{?time}these kernels take as long for few tokens as for many, so no placement gains more",
	"why.expert":     "in {expert_in} expert {expert} has {expert_load:3} × the mean load[ (by chance: {null:3})]",
	"why.wait":       "ranks wait {wait:ns} per step, {=caused}",

	"caused": "{cause} of it for {what}[ ({did})][, which {who} would save] | and no single cause explains most of it",

	"host.Python_garbage_collection": "keep Python from collecting garbage there: gc.freeze(), then gc.disable()",
	"host.waiting_for_Python's_lock": "move the work of the Python threads that hold the lock to other processes",
	"host.launch_calls":              "launch calls take too long: use CUDA graphs, or check {whose}",
	"why.profiler":                   "{suspect} slows launches, too: see whether they are late under nsys",
	"host.":                          "the launch queue ran dry: check {whose} for pinning and other processes",

	"mode":       "{mode} | {?dispatch}dep | {?combine}tep", // ranks that send tokens to experts hold their own
	"why.phase":  "most of it is {phase}: {phase_ns:+ns} per step",
	"trace_kind": "in {kind} expert time is {=kind_is}; {=kind_much}",
	"kind_is":    "{kind_even} | {kind_time:%} uneven",
	"kind_much": "even ranks would gain about {kind_gain:%} ({kind_low:%} to {kind_high:%}) | " +
		"even ranks would gain {kind_high:%} at most | what even ranks would gain is unknown",
	"place_kind": "a step ({kind}) might take more or less{?kind_open}: {kind_low:+%} to {kind_high:+%} | " +
		"a step ({kind}) would take {kind_step:%} {kind_less|more} ({kind_low:+%} to {kind_high:+%}) | " +
		"what a step ({kind}) would take cannot be told: the load explains too little of its time",
	"of_kind": "for {kind} it is {kind_gain:speed}, {measured} | for {kind} it would be about {kind_gain:speed} " +
		"({kind_low:+%} to {kind_high:+%})[: the slowest rank's experts take {slower_experts:%} longer] | " +
		"for {kind} it cannot be told: speed would change by {kind_low:+%} to {kind_high:+%} | " +
		"for {kind} it would be about {kind_gain:speed}, as far as one step tells",

	"said": "undecided: {undecided} is {low:%} to {high:%} faster[{place}] | " +
		"no {unshown} shown: speed changes by {low:+%} to {high:+%}[{place}] | " +
		"the {between} is between {low:+%} and {high:+%}[{place}] | {what} is {gain:speed}[{place}]",
	"so_far": "the gain is {low:+%} to {high:+%}[{place}]",

	"caution": "{?fixed_rate}, at a fixed request rate | {?explained_gain}, more than the rank load explains",

	"why.needed":    "about {needed} in all would decide",
	"why.share":     "arm {share_arm} reaches {share:%} of the balanced gain[ ({share_low:%} to {share_high:%})]",
	"why.placement": "do not expect the {gain:%} from placement: even ranks bring about {alone:%}",
	"why.dose": "load imbalance of max/mean {load:.2} costs {cost:%} of time[{place}] | " +
		"each 10 % of load imbalance costs {cost:%} of time[ ({cost_low:%} to {cost_high:%})][, {own:%} under " +
		"learned routing][{place}]",

	"point":    "at {at} the gain is {at_gain:+%}[ ({at_low:+%} to {at_high:+%})]",
	"at_loads": "{?server}--server SERVER --ready URL --client 'CLIENT ‹concurrency›' | -- YOUR_BENCHMARK ‹concurrency›",

	"sglang_arm":  "--init-expert-location {file}[ --ep-num-redundant-experts {redundant}]",
	"vllm_arm":    "MOEBALANCE_PLACEMENT={file} --enable-eplb",
	"ascend_arm":  "--additional-config '{\"expert_map_path\": \"{file}\"}'",
	"trtllm_arm":  "--extra_llm_api_options OPTIONS.yaml",
	"why.payback": "predicted: each second that loading the {moved:moved copy} takes is won back in {payback:.0} steps",
	"why.untimed": "load is not time: a trace of the run shows what it {costs}",
	"why.experts": "{?unplaced}no load over two or more ranks is known, so this is the load of experts",

	"no_time":       "the trace predicts no time",
	"unmeasured":    " is not known on two ranks of both arms, so the traces do not show whether routing was balanced",
	"over_ranks":    "{of} over ranks has max/mean {here:.3} in the {arm} arm and {there:.3} in the {other} arm",
	"apart_kinds":   "{kinds} in the normal arm and {others} in the perfect arm are not compared",
	"other_kernels": "mostly {kernel} in the {arm} arm and {others} in the {other} arm",
}

// steps words what to do next, and the command, as it is typed but for words in capitals; one that begins with a
// verb is of this program.
var steps = map[string][2]string{
	"graphs":     {"Record the kernels inside CUDA graphs.", record},
	"ranks":      {"Give the files of all ranks, or record all ranks.", record},
	"alone":      {"{?alone}This run has one rank: see how even it would be over several.", "counts --ep RANKS COUNTS"},
	"all":        {"Give the files of the other {missing:rank}, too.", "trace [{flags} ]FILES_OF_ALL_RANKS"},
	"again":      {"Fix that, and record again.", record},
	"other_load": {"Record another load that you serve: it may be uneven there.", record},
	"gpu":        {"Look for other work, clocks and power limits on that GPU.", record},
	"same_run":   {"{?unsure}Record a trace of the run that the counts are of.", record},
	"tokens":     {"Spread requests evenly over the data-parallel ranks, then record again.", ""},

	"mend.fused_experts":     {"Give the recorded expert counts of the same run.", "trace --counts COUNTS {uncounted}"},
	"mend.counts_contradict": {"Give the counts of the same launch, or none.", "trace --counts COUNTS FILES"},
	"mend.no_experts":        {"See which kernels are not recognized.", "trace --table kernels {given}"},

	"both":      {"Both arms are in this capture: compare them.", "compare {both}"},
	"balanced":  {"Record the learned router, and compare both.", "compare NORMAL {perfect}"},
	"swapped":   {"Give the learned side first.", "compare {swapped}"},
	"one_arm":   {"Ranks of one run are judged together.", "trace {one_arm}"},
	"whole":     {"{?apart}Give all ranks of each arm, or one folder that holds both.", "compare NORMAL_DIR PERFECT_DIR"},
	"both_arms": {"{?unrecorded}Record both arms of one command, and compare them.", recordBoth},
	"acted":     {"{?claimed}Record both arms: their traces show whether the switch acts.", recordBoth},
	"trust":     {"If your engine has its own switch, accept the arms as labeled.", "compare --trust-arms {trusted}"},

	"measure":      {"Measure what balance gains.", "bench" + yours},
	"measure.hook": {"Write logits for the hook, and measure what balance gains.", hookBench + anyServer},

	"loads":      {"Measure at your loads.", "bench --points {loads}[ {metric}][ --treatment {treatment}] {=at_loads}"},
	"backend":    {"{?time}Another backend may gain: measure both.", "bench --arm THIS --arm OTHER" + yours + " ‹arm›"},
	"small":      {"{?bar}Record another load that you serve: it may gain more.", record},
	"builds":     {"Compare them at your loads.", "bench {arms} --points {loads}" + yours + " ‹concurrency› ‹arm›"},
	"resume":     {"Run the rest.", "bench --resume {folder}"},
	"more":       {"Run {more:.0} {units} in a campaign of their own.", "bench --{units} {more:.0}" + asBefore},
	"longer":     {"Repeat it with longer runs, which vary less.", "bench --{units} {n}" + asBefore},
	"five":       {"Start the server anew for each launch.", "bench --treatment hook {again|" + anyServer + "}"},
	"prove_hook": {"{?unproved}Use the hook: counts prove it.", "bench --treatment hook {again|-- YOUR_BENCHMARK}"},
	"prove_trt": {"{?unseen}Start TensorRT-LLM's ranks so that each sees the switch and prints its line.",
		"bench {before|-- }mpirun -n {ranks|RANKS} trtllm-llmapi-launch {behind|YOUR_BENCHMARK}"},
	"launched": {"{?launched}See which ranks printed the line of the switch.", "compare --table proof {folder}"},
	"checks":   {"See all checks.", "compare --table checks {folder}"},
	"page":     {"See it as a page.", "report -o report.html {folder}"},
	"trace":    {"Record where the time goes.", "profile -- {benchmark|YOUR_COMMAND}"},

	"counts":       {"Let the engine record expert counts.", "help formats"},
	"experts":      {"Record the engine's expert counts: they show what to move.", "counts --ep {ranks} COUNTS"},
	"cause":        {"{?movable}Record the engine's expert counts: they show what to move.", "counts --ep {ranks} COUNTS"},
	"ep":           {"Say how many ranks share the experts.", "counts --ep RANKS {unplaced}"},
	"trace_counts": {"See what it costs in time.", "trace --counts {counted} EXPORTS"},
	"place": {"Find a placement, judged on other counts.",
		"place[ --ep {ranks}][ {traces}] --judge OTHER_COUNTS {counts}"},
	"judge":       {"Judge it on other counts.", planned + "--judge OTHER_COUNTS {unjudged}"},
	"time":        {"See what it saves in time.", planned + "--trace EXPORT {untimed}"},
	"write":       {"Write it for {engine|your engine}.", planned + "--write-{flag|sglang} {new|NEW.json} {write}"},
	"keep":        {"Keep the running placement until the traffic changes.", "counts --ep {keep} LATER_COUNTS"},
	"gain_placed": {"Measure it against what runs.", "bench --arm running --arm {placed} " + anyServer},

	"sglang": {"{file} is written: SGLang loads it at start.", "SGLANG_SERVER {=sglang_arm}"},
	"vllm": {"{file} is written: the hook applies it.", "hook -o hook && export PYTHONPATH=$PWD/hook " +
		"MOEBALANCE_CACHE=CACHE && MOEBALANCE_PLACEMENT={file} VLLM_SERVER --enable-eplb"},
	"ascend": {"{file} is written: vllm-ascend loads it as its expert map.", "VLLM_SERVER {=ascend_arm}"},
	"trtllm": {"{file} is written: OPTIONS.yaml names it as moe_config.load_balancer.", "TRTLLM_SERVER {=trtllm_arm}"},

	"generate": {"Write the logits.", generate + "--cache cache"},
	"rewrite":  {"Write the cache again.", generate + "--dtype {dtype|DTYPE} --cache {folder}"},
	"agree":    {"Write a plan on which all ranks agree.", generate + "--dtype {dtype|DTYPE} --cache {agreed}"},
	"verify":   {"Check it.", "logits verify {folder}"},
	"use":      {"Benchmark with it.", "MOEBALANCE_CACHE={folder} moebalance bench --treatment hook " + anyServer},
}

// Parts of commands.
const (
	yours      = "[ {metric}] -- YOUR_BENCHMARK"
	record     = "profile -- YOUR_COMMAND"
	anyServer  = "--server SERVER --ready URL --client CLIENT"
	generate   = "logits generate --model {model|MODEL} --ep {ranks|RANKS} --mode {=mode|MODE} "
	hookBench  = generate + "--cache cache && MOEBALANCE_CACHE=cache moebalance bench --treatment {hook}[ {metric}] "
	recordBoth = "profile --dir normal -- {benchmark|YOUR_COMMAND} && moebalance profile --dir perfect --perfect" +
		"[ --treatment {treatment}] -- {benchmark|YOUR_COMMAND} && moebalance compare normal perfect"
	asBefore = "[ --treatment {treatment}] {again|-- YOUR_BENCHMARK}"
	planned  = "place --ep {ranks} --redundant {copies} "
)
