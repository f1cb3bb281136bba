package caveat

// catalog words what traces, counts, placements, comparisons and checks find. A code whose cases
// need different words has an entry for each, behind a dot; a case without one takes the words
// of its code, and a rare code without any is told by its name. One that is more than a note begins with its severity;
// what checks of campaigns find weighs by their status.
var catalog = map[string]string{
	// What a capture or its export left out.
	"graph_mode":    "the time inside {graphs:graph launch} is excluded: record with --cuda-graph-trace=node",
	"graph_capture": "warning: {detached:n} of {replayed:replayed kernel} were captured before recording: start earlier",
	"loss":          "warning: the profiler says: {messages}",
	"lost_kernels":  "{lost:n} of {launches:launch} have no kernel, or one without a duration: record a shorter capture",
	"open_ranges":   "{ranges:range} never closed, taken to last to the end of the capture",
	"no_launch":     "{kernels:n} of {all:kernel} without a recorded launch: no range of a thread locates them",
	"repeated":      "warning: {kernels:n} of {all:kernel} are recorded twice, and count once",
	"missing_ranks": "only {given} of the run's {world} ranks were given",

	// Ranks that do not fit together.
	"lost_kernels.steps": "the ranks ran unequally many expert GEMMs in some layers: record a shorter capture",
	"ranks_differ":       "ranks {rank} and {other} recorded different layers or steps: kernels were lost, or runs differ",
	"rank_groups":        "doubt: not all ranks wait for each other: give each group's files by themselves",
	"rank_groups.unseen": "doubt: collectives wait {ratio:.1} times as long in some layers: a rank not given is late",

	"ranks_differ.stages": "ranks {rank} and {other} belong to two stages of a pipeline: give each stage's files alone",

	// Steps and layers.
	"inferred":        "layers are inferred: kernels repeat as {steps} steps of {layers} MoE layers",
	"inferred_beside": "ranges name the steps; layers are inferred: {steps} steps of {layers} layers",
	"blocks":          "layers and steps are unknown: expert blocks are numbered in order of launch",
	"unclear_blocks":  "layers and steps are unknown: NVTX ranges would name them",
	"other_arms":      "only the steps of the {arm} arm count; ranges name steps of {others} too",
	"switched":        "{steps:#step} excluded: first after a router switch",
	"partial_steps":   "{steps:#step} excluded as incomplete: some rank lacks a part",
	"other_kind":      "{steps:#step} excluded: of {kinds} kinds the one with most expert time counts",
	"no_steps":        "no range names a step: the whole capture counts as one step",
	"no_layers":       "layers are unknown: all expert time of a step is judged together",
	"start_up":        "{steps:#step} excluded as warm-up: GPU time over {factor}× the median of later steps",

	// Expert time.
	"fused_experts": "{share:%} of the expert time is in kernels that fuse {phases} ({kernels}): --counts gives the load",
	"no_experts": "no kernel or range is known to run experts: record NVTX ranges (vLLM --enable-layerwise-nvtx-tracing" +
		", SGLang --enable-layerwise-nvtx-marker), or name kernels by --phase experts=REGEX",
	"no_experts.layers": "{share:%} of the expert GEMM time is in no layer: record more whole steps, or NVTX ranges",
	"no_experts.steps":  "no step was recorded whole by all ranks: record more steps",
	"no_experts.time":   "the steps that count hold {expert_ns:ns} of expert time ({share:%}): record more whole steps",
	"no_experts.rank":   "{rank:#rank}: no expert time in the steps that count: record more whole steps",
	"no_expert_times":   "one kernel runs all experts of a rank: 'trace --counts DIR' allocates its time by load",
	"unknown_kernels":   "warning: {share:%} of the GPU time is of unknown phase: {kernels}; see 'trace --table kernels'",

	// Counts, and counts beside a trace.
	"counts_contradict": "warning: [the counts are of another arm or run: expert time contradicts them in layer {layer}]" +
		"[the counts are of {counted:layer}, experts run in {layers}: another model, or a part of it]",
	"counts_layers":        "warning: the counts are of {counted:layer}, experts run in {layers}: another model or a part",
	"counts_steps":         "warning: counts of other steps, of [{how} ]{counted:token} and not {traced:n}, are not used",
	"counts_order":         "the counts name layers {first} to {last}: inferred layers 0 to {most} are these, in order",
	"padded_tokens":        "{choices:choice} of padding excluded: they name no expert",
	"load_without_time":    "the recorded load is {load:%} uneven over ranks, the expert time {time:%}",
	"counts_assumed_ranks": "the counts do not name ranks; assumed: the {ranks} ranks of the trace, contiguous experts",
	"one_rank":             "warning: {level}s {first} to {last} alone have load: the recording of one of {ranks:rank}",
	"no_ranks":             "the number of ranks is not recorded, so only expert load is reported",
	"experts_seen":         "the number of experts is not recorded; {experts} are assumed, the largest that occurs",
	"no_top_k":             "top-k is not recorded: chance assumes 1, where random routing is most uneven; give --model",
	"window":               "each step is a sum over forward passes: single passes are at least as uneven",
	"dense_layers":         "{layers:#layer} excluded: no step has a slot there, as in dense layers",
	"idle_steps":           "{steps:idle step} excluded",
	"empty_steps":          "{empty:n} of {steps:step} excluded: no slot in them",
	"vllm_axis":            "warning: before PR 51813 vLLM computed this balancedness over layers: check its version",
	"rank_files":           "warning: {experts} experts do not divide over the {ranks} ranks with a file: is one missing?",
	"same_sources":         "warning: {ranks:rank} recorded the same counts: with tep the load is {ranks} times too large",
	"incomplete_passes":    "warning: {excluded:n} of {passes:pass} excluded: not every one of {ranks:rank} recorded them",

	// Placements.
	"two_phases":            "phases are learned together; a placement for one is learned from its counts",
	"global":                "experts have no groups for {nodes:node}, so EPLB balances over all ranks at once",
	"no_placement":          "warning: the recorded placement is not used: {error}",
	"one_window":            "it is learned from one window: more windows make a placement that lasts",
	"judged_learned":        "{alike:n} of {windows:judged window} resembled a learned one: judge on other traffic",
	"placement.no_windows":  "there are no other counts to judge the placement on",
	"placement.repeats":     "the learned counts recur in {repeats} of {windows:judged window}",
	"placement.chance":      "too few tokens: max/mean {load:.3} is within chance (95th percentile {null:.3})",
	"placement.load":        "on other counts the busiest rank's load changes by {change:+%} (threshold {threshold:0%})",
	"placement.no_load":     "no judged window has load",
	"placement.worse":       "worse in {windows:judged window}",
	"placement.time":        "the predicted step time falls by {least:%} at least (worth a trial: {threshold:0%})",
	"placement.time_rises":  "the predicted time rises",
	"placement.time_open":   "the predicted time may rise as well as fall",
	"placement.unlike":      "load explains {explained:0%} of what the ranks' expert times differ in",
	"placement.alike":       "{windows:is judged window} like the learned ones; judge on other traffic",
	"placement.contradicts": "the counts are of another arm or run than the trace, whose expert time contradicts them",

	// Cases of one code share its sentence, each with the values that it has.
	"placement":         "better in {better} of {windows:judged window}[, worse in {worse}]",
	"no_time":           noTime + "[: load explains {explained:0%} of it][: give --ep {ranks}][: {doubt:words}]",
	"no_time.no_layer":  noTime + ": no layer of the counts has expert time in it",
	"no_time.no_replay": noTime + ": its steps cannot be replayed",
	"no_time.phase":     noTime + ": its steps ({kind}) are of another phase than the judged counts",
	"no_time.flat":      "in the trace load is {load:%} uneven over ranks, expert time {time:%}",
	"no_prediction": "the campaign predicts no gain[: it is {verdict}][: it has {arms:arm} of at least 3]" +
		"[: max/mean {from:.3} to {to:.3} is outside its {least:.3} to {most:.3}]" +
		"[: its cost of imbalance is open ({low:+%} to {high:+%})]; add bench --arm NAME=target:1.2 --counts PATH",

	"no_prediction.ranks":        "the campaign predicts no gain: it is of {ranks:rank}, not of {asked}",
	"no_prediction.not_measured": "the campaign predicts no gain: it did not measure {tokens:.0} tokens per step",
	"no_time.no_evidence":        "no evidence of time: give --trace EXPORT of the same model",

	// Why two sides of a comparison are no arms of one run.
	"refused.no_moe":         "the {arm} side has no MoE kernel, so no routing is compared",
	"refused.profilers":      "one side is of Nsight Systems, the other of PyTorch's profiler: record both alike",
	"refused.same_recording": "{rank:#rank} is the same recording on both sides",
	"refused.ranks":          "the sides have {common} of {all} ranks in common ({arm} {ranks}, {other} {others})",
	"refused.layers":         "the sides have different layers: {arm} has {layers}; {other} has {others}",
	"refused.swapped":        "the sides are swapped: the first was balanced ({evidence}), the second not ({others})",
	"refused.arm":            "the {arm} side records the arm \"{recorded}\" ({evidence})",
	"refused.load":           "balance is not proved: {arm} arm: rank load {load:.3} in layer {layer} (floor {floor:.3})",
	"refused.unmeasured":     "balance is not proved: the {arm} side does not record its arm, and {of}" + unmeasured,
	"refused.unbalanced":     "balance is not proved: " + overRanks,
	"refused.gates":          "the sides run gates of {here} and {there} experts",
	"refused.tokens":         "the sides hold {here:.0} and {there:.0} tokens per step",
	"refused.outside":        "compute outside MoE blocks differs: it takes {normal_ns:ns} and {perfect_ns:ns} per {per}",
	"refused.experts":        "the {other} arm's experts take {share:%} less time than even sizes explain: other kernels",
	"refused.kernels":        "the experts run in other kernels, " + otherKernels,
	"refused.attention":      "attention runs in other kernels, " + otherKernels,
	"refused.worlds":         "the {arm} side is of {here:rank}, the {other} side of {there}",
	"refused.one_rank":       "rank {rank}'s experts alone take {by:%} longer in the {arm} arm: slow kernel or GPU",
	"refused.late":           "late launches take {share:%} of a step in the {arm} arm, {other_share:%} in the other",

	// What was left out of a comparison, and what its numbers do not show.
	"outside_steps":             "{share:%} of the kernel time is outside every step and excluded",
	"few_ranks":                 "warning: the sides share {common} of the run's {world} ranks: give all ranks' files",
	"one_launch":                "one launch ({steps} and {others:step}): only a campaign (bench) gives a verdict",
	"campaign_refused":          "warning: the campaign is {verdict}: its gain and step time are not used",
	"campaign_unlike":           "warning: the campaign ran on {here:rank}, the traces on {there}",
	"campaign_apart":            "warning: the campaign measured {measured:+%}, the traces predict {predicted:+%}",
	"campaign_step_time":        "the campaign gives no step time: several loads, kinds of steps or no complete pair",
	"campaign_step_time.metric": "the campaign has {name} in {unit}; for tokens per second, add --step-tokens",
	"kinds_apart.unlike":        apartKinds + ": none have the same kernels and as many tokens",
	"kinds_apart.work":          apartKinds + ": the arms did other work in them",
	"kinds_apart.replay":        apartKinds + ": their steps cannot be replayed, or have under a tenth of the expert time",
	"late_launches":             "launches are late; if they were on time, the gain would be about {gain:+%}",
	"switch_cost":               "the switch costs the perfect arm {ns:ns} per step ({share:%}): the gain leaves it out",
	"profiler_overhead":         "the profiler makes a step with balanced routing longer by {share:%}",
	"equal_work_unknown":        "warning: under {share:0%} of the compute is outside MoE blocks: equal work is not shown",
	"arm_on_trust":              "warning: the {arm} arm is accepted as labeled; the captures say {said} ({evidence})",
	"arm_unknown":               "neither side records its arm: both are accepted as labeled",
	"arm_unknown.one":           "only one side records its arm",
	"balance_not_measured":      "{of}" + unmeasured,
	"slow_gpu":                  "warning: {rank:#rank} takes {by:%} longer for equal dense GEMMs: slower, or more tokens",
	"perfect_not_balanced":      "warning: " + overRanks + ": uneven hardware, or routing that is not balanced",
	"arms_look_alike":           "warning: " + overRanks + ": no imbalance to remove, or the sides are swapped",

	// What checks of campaigns found. Most that pass say nothing beyond their status.
	"treatment_proved.unproved":     "balance is not proved: {missing:;}",
	"treatment_proved.claimed":      "balance claimed for every rank, not measured: expert counts or traces measure it",
	"only_one_difference.other":     "the arms also differ in {differences:;}: make them equal",
	"only_one_difference.within":    "each launch holds all arms: only the switch differs",
	"only_one_difference.same":      "the arms run the same command: nothing but their names tells them apart",
	"only_one_difference.untreated": "nothing differs between the arms: the treatment was not applied",
	"equal_work.setup":              "the arms differ in {differences:;}",
	"equal_work.unequal":            "the arms did different work: {differences:;}[: fix the {fix} (--ignore-eos)]",
	"equal_work.half":               "one arm alone reported {names}, so equal work is not shown",
	"uneven_attention":              "attention is {imbalance:%} uneven over data-parallel ranks: no routing changes that",
	"separate_launches.assumed":     "each report is taken as one start of the server: put runs of one start in one file",
	"equal_work.none":               "no launch reported requests or tokens",
	"explained_gain.more": "{gain:+%} is more than even ranks can give (at most {most:+%}[: rank load {load:.3}]" +
		"[: all load on one of {ranks:rank}]): the rest is from the experts' GEMMs, or not from balance",
	"implausible_gain.units":  "{gain:+%} is more than routing can do: check that both arms report one metric in one unit",
	"fixed_rate.client":       "the client sends {rate} requests per second, which fixes the throughput: judge a latency",
	"outliers.launches":       "{launches:#launch}: {changes:+%} from the arm's median: look for what disturbed it",
	"outliers.pairs":          "a launch of {pairs:#pair}: {changes:+%} from the median of the arm",
	"outliers.gains":          "{launches:#launch}: the gain differs by {changes:+%} from the others': look for the cause",
	"outlying_segments.far":   "{segments:segment} in {launches:#launch} left out: {changes:+%} from the arm's median",
	"copied_values.same":      "equal values are copies, or have too few digits: they do not show how launches differ",
	"launcher.said":           "{messages:;}",
	"first_attempts.warn":     "failed: {failed}, interrupted: {interrupted}, left processes: {left}[, lost it: {lost}]",
	"first_attempts.selected": "{failed:n} attempts failed over {launches:launch}: what fails may choose the result",
	"other_processes.warn":    "other processes used the GPUs: {processes}: stop them before the campaign",
	"clocks.warn":             "mean SM clock: {arm} {mhz:.0}, {other} {others:.0} MHz: lock it by nvidia-smi -lgc",
}

const (
	noTime       = "the trace predicts no time"
	unmeasured   = " is not known on two ranks of both arms, so the traces do not show whether routing was balanced"
	overRanks    = "{of} over ranks has max/mean {here:.3} in the {arm} arm and {there:.3} in the {other} arm"
	apartKinds   = "{kinds} in the normal arm and {others} in the perfect arm are not compared"
	otherKernels = "mostly {kernel} in the {arm} arm and {others} in the {other} arm"
)

// unchecked words why a check had nothing to look at, for checks without words of their own for it.
var unchecked = map[string]string{"few": "too few launches to tell", "unrecorded": "was not recorded"}
