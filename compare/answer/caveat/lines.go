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
	recordAgain = "again.nsys|again"
	unevenNext  = "both place|experts measure.hook|measure"
	campaignWhy = "dose checks points share"
	compared    = "gain step saved"
	measureNext = "backend|measure.hook|measure"
	flatWhy     = "flat flat_time"
	countsOf    = "reported mean worst floor null"
	placed      = "time fall before after gains"
	placedWhy   = "written decision unpredicted untimed payback"
	busiest     = "[with {redundant:redundant expert} ]the busiest rank's load "
	placedWith  = "[ with {redundant:redundant expert}][: {worth}][ (the busiest rank's load falls by {fall:%})]."
	placedNext  = "time write|keep|gain_hooked|gain_placed"
	slowGEMMs   = " {by:%} longer than the others for equal dense GEMMs: "
	slowerToo   = "[; equal dense GEMMs take longer on {slower:#rank}]."
	foretold    = "[; these traces predict {predicted:speed}]."
	served      = "[; they serve {any}]."
)

// Lines are the first sentences of answers, by kind of result: the first row whose values are all known is told.
var Lines = map[string][]Line{
	"trace": {
		{"no answer", "no answer: {launches:CUDA graph launch} hide kernels in {hidden:ns} of GPU time.", "", "", "graphs"},
		{"no answer", "no answer: imbalance needs two ranks; {few} was given.", "", "", "alone|all|ranks"},
		{"no answer", "no answer: {doubt}.", "", "remedy", ""},
		{"slower GPU", under + "{?lone}rank {slow_ranks} takes" + slowGEMMs + "a slower GPU[, or {or}]. | " + under +
			"ranks {slow_ranks} take" + slowGEMMs + "slower GPUs[, or {or}].", "dense worst", "slower_gpu", "both gpu"},
		{"late launches", under + "{?late}late launches[ on rank {on}] make {=whom} wait {stall:ns} per step; {=even_ranks}.",
			"stall " + judgedTrace, "host profiler", "both " + recordAgain},
		{"attention uneven", under + "attention is {attention:%} uneven over ranks, expert time {experts:%}; {=even_tokens}.",
			"tokens attention " + judgedTrace, "attention", "both tokens"},
		{"uneven", under + "{=slow}; {=even_ranks}.", judgedTrace, "expert wait", unevenNext},
		{"load without time", under + "{=why.flat}.", "gain saved loss load time", "flat_time", "both backend same_run"},
		{"uneven", under + "{uneven}; it is even in {steps}.", "uneven worst", "", unevenNext},
		{"even", under + "expert time is even; late launches make the ranks wait {stall:ns} per step.", judgedTrace,
			"host profiler", "both|balanced|" + recordAgain},
		{"even", under + "expert time is even; {=left}.", judgedTrace, "wait", "both|balanced|other_load"}},

	"compare": {
		{"not comparable", "{?refusal}{verdict}: {why|the sides are no two arms of one run}" + slowerToo,
			"", "rest", "swapped|one_arm|whole|builds|both_arms trust"},
		{"no answer", "no answer: {doubt}.", compared, "remedy", "whole|" + measureNext},
		{"no verdict", "steps of {other} take {change:%} {less|more} GPU time than steps of {one}.",
			"normal perfect change", "phase", "builds"},
		{"imbalance significant", "{=said}" + foretold, compared, "placement", "place|cause"},
		{"", "{=said}[, below the {bar}]" + foretold, compared, "", "loads|other_load"},
		{"no verdict", "{?unbalanced}the perfect side is not balanced: its {of} over ranks has max/mean {there:.3}, the " +
			"normal side's {here:.3}[; its routing would be about {gain:speed}][ for {steps}]" + slowerToo, compared, flatWhy,
			measureNext},
		{"no verdict", "{?time}{=foreseen}" + slowerToo, compared, flatWhy, "backend same_run"},
		{"no verdict", "{?bar}{=foreseen}" + slowerToo, compared, flatWhy, "small"},
		{"no verdict", "{=foreseen}" + slowerToo, compared, flatWhy, "place|cause measure.hook|measure"},
		{"no verdict", "both sides are even: {of} over ranks has max/mean {here:.3} and {there:.3}; nothing is to gain here" +
			slowerToo, compared, flatWhy, "small"},
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
		{"inconclusive", "no decision: {far:is launch} far from the others; {=said}.", "gain", campaignWhy,
			"measure.hook|more|longer"},
		{"inconclusive", "{=said}.", "gain", "dose needed checks share", "measure.hook|more|longer"},
		{"no verdict", "{n:launch} cannot decide: {=said}.", "gain", campaignWhy, "five"},
		{"equivalent", "{other} and {one} are equally fast, within 1 %.", "gain", campaignWhy, "page builds"},
		{"", "{other} is {gain:speed} than {one}[{place}].", "gain", campaignWhy, "page builds"},
		{"imbalance significant", "{=said}[{=caution}].", "gain", campaignWhy, "page trace place"},
		{"", "{=said}[, below the {below:0%} threshold][{=caution}].", "gain", campaignWhy, "page acted|measure.hook|loads"}},

	"place": {
		{"not now", "{=why.flat}.", "gain load time fall before", "written flat_time", "backend same_run"},
		{"", "not enough evidence: {undecided}.", placed, placedWhy, "same_run|judge"},
		{"", "a step[ ({steps})] would take {step:%} {less|more} time" + placedWith, placed, placedWhy, placedNext},
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

// steps words what to do next, and the command, as it is typed but for words in capitals; one that begins with a
// verb is of this program.
var steps = map[string][2]string{
	"graphs": {"Record the kernels inside CUDA graphs.", record},
	"ranks":  {"Give the files of all ranks, or record all ranks.", "{=record_ranks}"},
	"alone":  {"{?alone}This run has one rank: see how even it would be over several.", "counts --ep RANKS COUNTS"},
	"all": {"Give the files of the other {missing:rank}, too[, or say with --ep how many exchange tokens{?many}].",
		"trace [{flags} ]FILES_OF_ALL_RANKS"},
	"again":      {"Fix that, and record again.", record},
	"again.nsys": {"{?suspect}Fix that, and record again under nsys.", "profile -- YOUR_COMMAND"},
	"other_load": {nothing + "Record another load that you serve: it may be uneven there.", record},
	"gpu":        {"Compare clocks, power limits and other work of the GPUs[, and tokens of their ranks{?or}].", record},
	"same_run":   {"{?unsure}Record a trace of the run that the counts are of.", record},
	"tokens":     {"Spread requests evenly over the data-parallel ranks, then record again.", ""},

	"mend.fused_experts":     {"Give the recorded expert counts of the same run.", "trace --counts COUNTS {uncounted}"},
	"mend.counts_contradict": {"Give the counts of the same launch, or none.", "trace {bare}"},
	"mend.rank_groups": {"Give one group's files, and how many ranks it has.",
		"trace --ep RANKS [{other_flags} ]FILES_OF_A_GROUP"},
	"mend.rank_groups.ep": {"Say how many ranks wait for each other, or leave --ep out.", "trace {no_ep}"},
	"mend.ranks_differ.stages": {"Give one stage's files, and how many ranks it has.",
		"trace --ep RANKS [{other_flags} ]FILES_OF_A_STAGE"},
	"mend.no_experts": {"See which kernels are not recognized.", "trace --table kernels {given}"},

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

	"loads": {"Measure at your loads.", "bench --points {loads}[ {metric}][ --treatment {treatment}] {=at_loads}"},
	"backend": {"{?time}Another backend may be faster: measure both.",
		"bench --arm THIS --arm OTHER='VARIABLE=VALUE'" + yours},
	"small":      {nothing + "Record another load that you serve: it may gain more.", "{=record_arms}"},
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

	"counts":       {"Let the engine record expert counts.", "counts --help"},
	"experts":      {toRecord, "counts --ep {ranks} COUNTS"},
	"cause":        {"{?movable}" + toRecord, "counts --ep {ranks} COUNTS"},
	"ep":           {"Say how many ranks share the experts.", "counts --ep RANKS {unplaced}"},
	"trace_counts": {"See what it costs in time.", "trace --counts {counted} EXPORTS"},
	"place": {"Find a placement, judged on {=judge_on}.",
		"place[ --ep {ranks}][ {traces}][ --judge {others}] {counts}"},
	"judge": {"Judge it on other counts, of later traffic or another load.", planned + "--judge OTHER_COUNTS {unjudged}"},
	"time":  {"See what it saves in time.", planned + "--trace EXPORT {untimed}"},
	"write": {"Write it for {engine|your engine: trtllm, sglang, vllm or ascend}.",
		planned + "--write-{flag|ENGINE} {new|NEW.json} {write}"},
	"keep": {"Keep the running placement until the traffic changes.", "counts --ep {keep} LATER_COUNTS"},
	"gain_hooked": {"{?hooked}Measure it against what runs.", "PYTHONPATH=$PWD/hook MOEBALANCE_CACHE=CACHE moebalance " +
		"bench --arm running --arm {placed} " + anyServer},
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
	record     = "{=record}"
	nothing    = "Nothing to do at this load. "
	toRecord   = "Record the engine's expert counts: they show what to move ('moebalance counts --help')."
	anyServer  = "--server SERVER --ready URL --client CLIENT"
	generate   = "logits generate --model {model|MODEL} --ep {ranks|RANKS} --mode {=mode|MODE} "
	hookBench  = generate + "--cache cache && MOEBALANCE_CACHE=cache moebalance bench --treatment {hook}[ {metric}] "
	recordBoth = "profile --dir normal -- {benchmark|YOUR_COMMAND} && moebalance profile --dir perfect --perfect" +
		"[ --treatment {treatment}] -- {benchmark|YOUR_COMMAND} && moebalance compare normal perfect"
	asBefore = "[ --treatment {treatment}] {again|-- YOUR_BENCHMARK}"
	planned  = "place --ep {ranks} --redundant {copies} "
)
