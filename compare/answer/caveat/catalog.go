package caveat

// catalog words every code that traces, counts, placements and comparisons warn of. A code
// with several cases has one entry for each, behind a dot.
var catalog = map[string]entry{
	// What a capture or its export left out.
	"graph_mode": {Note, "{graphs:graph launch} recorded as a whole: the time of the kernels inside is excluded; " +
		"capture with --cuda-graph-trace=node to see them", "CUDA graphs hide their kernels"},
	"graph_coverage": {Warn, "{recorded:n} of {launches:graph launch} have a recorded time: the others were lost", ""},
	"graph_lost": {Note, "{launches:graph launch} without any recorded graph node: the kernels of graphs were lost, " +
		"or are counted without a layer", "the kernels of CUDA graphs were lost"},
	"graph_capture": {Warn, "{detached:n} of {replayed:replayed kernel} belong to graphs captured before the " +
		"recording began: their layer is unknown; start the capture before CUDA graphs are captured",
		"graphs captured before recording"},
	"loss":           {Warn, "the profiler says: {messages}", "profiler lost events"},
	"partial_export": {Note, "a partial export ({filter}): times outside it are excluded", ""},
	"ignored": {Note,
		"{ignored:n} of {kernels:kernel} ({time_ns:ns}) in ranges that ask to be ignored: excluded", ""},
	"lost_kernels": {Note, "{lost:n} of {launches:launch} have no kernel: it was lost; record a shorter capture, " +
		"and let the profiler finish", "the profiler lost kernels"},
	"lost_kernels.steps": {Note,
		"{steps:#step} excluded: ranks have different numbers of expert GEMMs in a layer, so kernels were lost",
		"the profiler lost kernels"},
	"no_launch": {Note,
		"{kernels:n} of {all:kernel} without a recorded launch: no range of a thread locates them", ""},
	"ended_early.steps": {Note,
		"{without:n} of {steps:step} excluded, with ranges but no kernels: idle, or their kernels were lost", ""},
	"ended_early.ranges": {Note, "{after:n} of {ranges:range} begin after the last kernel ended, over {time_ns:ns}: " +
		"the capture of kernels ended early", ""},
	"no_kernels": {Warn, "{processes:process} with named ranges but without kernels: idle, or a rank whose kernels " +
		"were not captured", ""},
	"few_kernels.all": {Note,
		"{rank:#rank}: {kernels:.0} kernels, the median rank {median:.0}; its capture ended early or lost data",
		"one rank's capture lacks kernels"},
	"few_kernels.layer": {Note,
		"{rank:#rank}: {kernels:.0} kernels per layer, the median rank {median:.0}; kernels were lost",
		"one rank's capture lacks kernels"},
	"few_kernels.expert": {Note,
		"{rank:#rank}: {kernels:.2} kernels per expert, the median rank {median:.2}; kernels were lost",
		"one rank's capture lacks kernels"},
	"missing_ranks": {Note, "{given} of the run's {world} ranks were given: imbalance and loss are over these only",
		"only {given} of the run's {world} ranks were given"},

	// Rows that could not be used as they are.
	"backwards":    {Note, "{rows:event} that end before they begin: excluded", ""},
	"out_of_range": {Note, "{rows:event} at impossible times (beyond 104 days): excluded", ""},
	"correlation_reused": {Note,
		"{rows:call} with the correlation id of another call: each kernel is joined to the last call before it", ""},
	"unended_kernels": {Note, "{rows:kernel} without a recorded duration: excluded", ""},
	"open_ranges":     {Note, "{rows:range} never closed: assumed to end with the capture", ""},
	"other_device": {Note,
		"{rows:kernel} on another device than most of their process: counted for the same rank", ""},
	"no_process": {Note, "{rows:kernel} without a recorded process: assigned to an extra rank; others may be " +
		"renumbered. " +
		"Export one file per rank to avoid this", ""},
	"no_process.adopted": {Note, "{rows:n} of {kernels:kernel} without a recorded process: assigned to the only one",
		""},
	"no_process.none": {Note,
		"no kernel has a recorded process: kernels are joined to calls by correlation id alone", ""},

	// Ranks that do not fit together.
	"different_runs.times": {Note, "rank {rank} begins {gap_ns:ns} after rank {other} ended: they are not of one run",
		"the captures are of different runs"},
	"different_runs.models": {Note,
		"rank {rank} runs kernels of {libraries}, and rank {other} has none: they are of different models",
		"the captures are of different runs"},
	"other_layers": {Warn,
		"rank {rank} has other layers than rank {other}: pipeline stages, or exports of different runs", ""},
	"ranks_differ.shared": {Note, "ranks {rank} and {other} share layers, and one has layers that the other lacks" +
		apart,
		differently},
	"ranks_differ.ranges": {Note,
		"layers and steps are unknown: rank {rank} has ranges that name layers, or no expert GEMM, " +
			"and rank {other} has none that do" + apart, differently},
	"ranks_differ.layers": {Note,
		"layers and steps are unknown: rank {rank} has {own:inferred MoE layer} and rank {other} has {others}" + apart,
		differently},
	"ranks_differ.steps": {Note,
		"layers and steps are unknown: rank {rank} has {own:complete step} and rank {other} has {others}" + apart,
		differently},
	"ranks_differ.blocks": {Note,
		"layers and steps are unknown: rank {rank} has {own:expert block} and rank {other} has {others}" + apart,
		differently},
	"ranks_differ.when": {Note,
		"layers and steps are unknown: nothing tells which steps of ranks {rank} and {other} are the same" + apart,
		differently},
	"ranks_differ.stages": {Note, "layers and steps are unknown: ranks {rank} and {other} run different stages of a " +
		"pipeline; analyze each stage by itself", differently},
	"ranks_differ.layer_steps": {Note, "steps are unknown: rank {rank} has {own:step} and rank {other} has {others}" +
		apart,
		differently},
	"skew": {Warn, "{rank:#rank}: collectives end {spread_ns:ns} apart from those of the first rank (median), longer " +
		"than their mean transfer of {transfer_ns:ns}: wait and transfer are uncertain by as much, and which rank " +
		"the others wait for is unknown", "ranks' clocks differ"},
	"no_wait.one_rank": {Note, noWait + "only one rank was given", "waiting unknown"},
	"no_wait.missing": {Note, noWait +
		"{given} of the run's {world} ranks were given, and another one may have arrived last", "waiting unknown"},
	"no_wait.unmatched": {Note, noWait + "the ranks' collectives do not correspond", "waiting unknown"},
	"no_wait.no_sessions": {Note, noWait + "not every export records when its session started, which would also show " +
		"whether all are of one run", "waiting unknown"},

	// Steps and layers.
	"steps_renumbered": {Note, "numbers of steps are missing or repeated: steps are numbered in order of start", ""},
	"single_layers": {Note, "a benchmark of single layers: a step of the whole model runs more layers than these",
		""},
	"inferred": {Note, "layers are inferred, no range names them: kernels repeat as {steps} steps of {layers} MoE " +
		"layers; " +
		"dense layers are not counted", "layers inferred"},
	"inferred_beside": {Note, "in {steps:step} no range names the layers: they are inferred, and are as many as the " +
		"{layers} that ranges name in the other steps", "layers partly inferred"},
	"blocks": {Note, "layers and steps are unknown: {reason:words}; expert blocks are numbered in order of launch, " +
		"one for each layer and step", "steps and layers unknown"},
	"unclear_blocks": {Note, "layers and steps are unknown: {reason:words}", "which kernels make a layer is unknown"},
	"microbatches": {Note,
		"layers and steps are unknown: of {layers} inferred layers each two in a row carry the same load, " +
			"as where two microbatches run every layer one behind the other", ""},
	"no_expert_gemm": {text: "no kernel is recognized as an expert GEMM"},
	"few_blocks":     {text: "too few expert blocks for two steps"},
	"few_layers":     {text: "too few MoE layers for two steps"},
	"nothing_once_a_step": {text: "no kernel that models run once a step (embedding, positions, sampling, transfer " +
		"between stages) recurs at a fixed number of MoE layers"},
	"several_periods": {text: "kernels that models run once a step recur at several numbers of MoE layers"},
	"marks_elsewhere": {text: "kernels that models run once a step stand elsewhere too: before some layers, or between " +
		"other steps"},
	"many_layers":     {text: "kernels that models run once a step recur after more MoE layers than any model has"},
	"few_whole_steps": {text: "fewer than two whole steps were recorded"},
	"unlike_steps":    {text: "steps differ in which of their layers are alike"},
	"parts_of_steps": {text: "in a regular order more runs between some steps than between the others: they may be " +
		"parts of steps"},
	"little_in_steps":  {text: "complete steps hold {share:%} of the GPU time only"},
	"backward_kernels": {text: "forward and backward kernels are mixed, so expert blocks are not the layers of a step"},
	"no_attention": {text: "no attention is recognized between expert blocks, so layers and parts of layers look " +
		"alike"},
	"dense_between": {text: "between some expert blocks are dense GEMMs and no attention that is recognized: layers, or " +
		"parts of one"},
	"overlapping_microbatches": {text: "layers of a step have different expert blocks, as where microbatches overlap"},
	"shared_experts": {text: "some expert GEMMs take equally long in all layers and others do not: they may be of " +
		"shared experts"},
	"uneven_gaps": {text: "more routers or attention run between some expert blocks than between the others: kernels " +
		"were lost"},
	"uncommon_steps": {Note, "{rank:#rank}: of {steps} whole steps all ranks have {common}; the others are excluded",
		""},
	"inferred_steps": {Note, "steps are inferred, no range names them: the layers that ranges name come in order " +
		"{steps} times", "steps inferred"},
	"selected_steps": {Note, "only steps {first}-{last} of {least}-{most} count (--steps)", ""},
	"other_arms": {Note, "only the steps of the {arm} arm count; ranges name those of {others} too: " +
		"'moebalance compare CAPTURE' sets both beside each other", "steps of other arms excluded"},
	"switched": {Note, "{steps:#step} excluded: first after a router switch, which ranks do not finish together",
		"first step after a switch excluded"},
	"no_steps": {Note, "no range names a step: the whole capture counts as one step; 'trace --step-pattern' says " +
		"which names do", ""},
	"no_layers": {Note, "no range names a layer: all layers count as one; 'trace --layer-pattern' says which names do",
		""},
	"partial_steps": {Note,
		"{steps:#step} excluded as incomplete: some rank has no kernels there, or lacks a layer, or a phase of one, " +
			"that it has in other steps", "incomplete steps excluded"},
	"other_kind": {Note, "{steps:#step} excluded: of {kinds} kinds of steps (prefill and decode, or token counts " +
		"more than twofold apart) only the one with most expert time counts", "other kinds of steps excluded"},
	"start_up": {Note, "{steps:#step} excluded as warm-up: GPU time over {factor}× the median of later steps",
		"warm-up excluded"},

	// Expert time.
	"fused_experts": {Note, "{share:%} of the expert time is in kernels that do {phases} in one ({kernels}): how " +
		"long a rank works and how long it waits cannot be told apart, so there is no imbalance of time; recorded " +
		"counts ('trace --counts') give the load, and 'moebalance compare' the step times of both arms",
		"one kernel holds a rank's work and its waiting"},
	"no_experts": {Note, "no kernel is recognized as an expert GEMM, and no range names experts: a dense model, or " +
		"plain GEMMs for each expert; record NVTX ranges (vLLM --enable-layerwise-nvtx-tracing, SGLang " +
		"--enable-layerwise-nvtx-marker, or your own, such as 'layer 3 experts'), or name kernels by --phase " +
		"experts=REGEX", "no expert kernel is recognized"},
	"unplaced_experts.layers": {Note,
		"{share:%} of the expert GEMM time is in no layer, where the busy ranks of different layers cancel; " +
			"name steps and layers by NVTX ranges, or record more whole steps", unplaced},
	"unplaced_experts.gemms": {Note,
		"no expert GEMM is recognized: the time of the phase experts is that of kernels beside the GEMMs, " +
			"or less than the unknown time; --phase experts=REGEX names kernels, and NVTX ranges name phases",
		unplaced},
	"little_evidence.no_step": {Note, "no step was recorded whole by all ranks; record more steps", ""},
	"little_evidence.time": {Note,
		"the steps that count hold {expert_ns:ns} of expert time, {share:%} of the GPU time without collectives; " +
			"record more whole steps", ""},
	"little_evidence.rank": {Note,
		"rank {rank} ran no expert kernel in the steps that count: its kernels were lost, or its experts have no name",
		""},
	"no_expert_times": {Note, "one grouped kernel runs all experts of a rank, so no time is measured per expert; " +
		"pass recorded counts ('trace --counts DIR') to allocate it by load", "no time per expert"},
	"expert_numbers": {Note,
		"experts are numbered from {first} to {last}, more than any model has: expert imbalance is not computed", ""},
	"unknown_kernels": {Warn, "{share:%} of the GPU time is in kernels whose phase neither a range nor their name " +
		"tells: {kernels}; see 'trace --table kernels'", "kernels of unknown phase"},
	"fused_kernels": {Warn,
		"{share:%} of the GPU time is in kernels that fuse several phases ({kernels}): it counts as {phase}, " +
			"and includes {others}", ""},

	// Counts beside a trace.
	"counts_contradict.even_time":  {Warn, contradict + "the load is uneven and the time is even" + otherArm, ""},
	"counts_contradict.even_load":  {Warn, contradict + "the time is uneven and the load is even" + otherArm, ""},
	"counts_contradict.other_rank": {Warn, contradict + "the rank with most time has little load" + otherArm, ""},
	"counts_order": {Note, "the counted layers {first} to {last} are assumed to be, in their order, the inferred " +
		"layers 0 to {most}", "order of counted layers assumed"},
	"no_load": {Note, "the recorded counts lack {missing:n} of {pairs:pair} of rank and layer: no time is allocated " +
		"there", "counts incomplete"},
	"counts_ranks": {Warn, "the recorded counts have {ranks:rank}, the run had {world}", ""},
	"counts_idle.unused": {Warn,
		"{layer:#layer}: {experts:expert} with {share:%} of the recorded load never ran in the trace: " +
			"the counts may be of another run or other steps", ""},
	"counts_idle.unloaded": {Warn, "{layer:#layer}: {experts:expert} without recorded load ran in the trace: " +
		"the counts are of another run or other steps", ""},
	"counts_layers.no_time": {Warn,
		"the trace has no expert time in a numbered layer, so no time is allocated by the recorded counts", ""},
	"counts_layers.zero":    {Warn, "the recorded counts are all zero, so no time is allocated by them", ""},
	"counts_layers.without": {Warn, "the recorded counts lack these layers, in which experts run: {layers}", ""},
	"counts_layers.idle": {Warn, "the recorded counts have layers in which no expert runs in the trace: {layers}",
		""},
	"counts_no_ranks": {Note,
		"the number of ranks is not recorded, so only expert load is reported, and no time is allocated", ""},
	"counts_assumed_ranks": {Note,
		"the ranks of the counts are not recorded; assumed: the {ranks} ranks of the trace, contiguous experts", ""},

	// Counts.
	"ambiguous_array": {Warn,
		"read as counts of [layers, experts]; so few numbers could also be the experts each token chose " +
			"(--axes tokens,topk)", ""},
	"empty_steps": {Note,
		"{empty:n} of {steps:step} excluded: they hold no counts, as the recorder's buffer was not full", ""},
	"no_ranks": {Note, "the number of ranks is not recorded, so only expert load is reported; give the EP size",
		"number of ranks unknown"},
	"even_replicas": {Note, "slots of replicated experts are assumed to be split evenly among the copies", ""},
	"experts_seen": {Note,
		"the number of experts is not recorded; {experts} are assumed, up to the largest that occurs; " +
			"name the model if it has more", ""},
	"no_top_k": {Note, "the experts per token are not recorded, so load is not compared with random routing; name " +
		"the model", "experts per token unknown"},
	"window": {Note, "each step is a sum over forward passes, in which busy ranks that alternate cancel; " +
		"the imbalance of single passes, weighted by slots, is at least this", "counts are sums over passes"},
	"cumulative": {Note, "these counters run since the engine started, warm-up included; compare two scrapes with " +
		"--since or --for",
		"counts since engine start"},
	"no_placement": {Warn, "the recorded map of copies places no experts, and is left out: {error}", ""},
	"incomplete_passes": {Warn,
		"{excluded:n} of {passes:n} iterations × layers excluded: not every one of the {ranks} ranks " +
			"recorded them exactly once", ""},
	"dense_layers": {Note, "{layers:#layer} excluded: no step has a slot there, as in dense layers",
		"dense layers excluded"},
	"idle_steps": {Note, "{steps:idle step} excluded", ""},
	"vllm_axis": {Warn, "several vLLM releases computed this balancedness over layers instead of ranks " +
		"(fixed with pull request 51813): check the version", ""},
	"eplb_not_running.overdue": {Warn,
		"EPLB is not running for model {model}: the countdown to the next rearrangement is at {left} " +
			"(vLLM issue 57883); the balance reported here is that of the last placement", ""},
	"eplb_not_running.stuck": {Warn,
		"EPLB is not running for model {model}: the last {lines} lines are all of step {step} (vLLM issue 57883)", ""},
	"repeated_experts": {Warn, "{repeated:n} of {choices:n} choices name an expert twice, which no router does: " +
		"the engine recorded them wrongly, or simulated the routing with replacement", ""},
	"alike_tokens": {Note, "{excluded:n} of {choices:choice} of tokens that choose the same experts {run} times or " +
		"more in a row excluded: an engine's memory profiling or warm-up, not text", ""},
	"padded_tokens": {Note, "{choices:choice} of padding excluded", ""},
	"ranks_disagree": {Warn, "{file} says that all ranks hold the same tokens (tep), but their counts differ in " +
		"{cases:case} of iterations × layers; those of rank 0 are used", ""},
	"other_statistics":   {Note, "other statistics excluded, as they hold no counts: {files}", ""},
	"missing_iterations": {Note, "iterations {first} to {last} are recorded with gaps: {recorded} of {all}", ""},
	"incomplete_grid": {Warn,
		"{iterations:iteration} of {layers:layer} should be {expected} counts, but there are {recorded}", ""},
	"same_sources": {Warn, "all {ranks} ranks recorded the same counts: if they hold the same tokens (tep), the load " +
		"is {ranks} times too large, and floor and chance are those of as many tokens; max/mean is not affected", ""},

	"no_last_newline": {Note, "the last line does not end: if the file was cut, its last count is too small and more " +
		"are missing", ""},

	// How a campaign was judged.
	"rejudged": {Warn, "judged by other flags than the campaign was run under: {flags}", "judged by other flags"},
	"sequential": {Note, "stopped by the sequential rule after {pairs:pair}; the confidence shown is that of one look",
		"stopped by the sequential rule"},

	// Which proof of balance the launches of a campaign can give.
	"proof_to_come.acknowledged": {Note, toCome + "claimed by what each rank acknowledges; --counts, with the server's " +
		"MOEBALANCE_COUNTS, would measure it", ""},
	"proof_to_come.counts":        {Note, toCome + "measured by the expert counts of each launch", ""},
	"proof_to_come.traces":        {Note, toCome + "measured by the traces of the profiled pair", ""},
	"proof_to_come.line":          {Note, toCome + inLog, ""},
	"proof_to_come.line_of_ranks": {Note, toCome + inLog + "; give --ranks N if the report does not state it", ""},
	"proof_to_come.none": {Note, toCome + "none unless the report states its routing, because {name} prints no proof " +
		"line: give --counts, --profile or --proof", ""},

	// Placements.
	"global": {Note, "the model named, if any, has no expert groups that divide over {nodes} nodes, so experts are " +
		"placed on any node", "experts on any node"},
	"one_window": {Note, "one window is too few to learn from: EPLB's plan fits only what it has seen; give more " +
		"windows", "one window of traffic"},
	"doubles": {Note, "{doubles:copy} stay on a rank that has another of the same expert, as in what runs: more " +
		"--max-moves may end that", "copies share a rank"},
	"two_phases": {Note, "prefill and decode want placements of their own where they run apart: place each alone", ""},
	"judged_learned": {Note, "{alike:n} of {windows:judged window} resembled a learned one (within 3 %), which " +
		"flatters every plan: judge on other traffic", "judged traffic resembles learned"},
	"raises_load": {Warn, "the plan raises the busiest rank's load by {change:%}: max/mean {judged:.3}, before " +
		"{baseline:.3}", "load rises in some windows"},
	"costs_time": {Warn, "the plan evens the load and raises the predicted {of} by {change:%}",
		"time rises in some windows"},
	"no_step_time": {Note, "the time of a step is unknown, so changes are of expert time: give --campaign or " +
		"--step-time", "step time unknown"},
	"more_than_balance": {Warn, "the predicted gain of {gain:+%} is more than the campaign measured for balanced " +
		"routing ({measured:+%}, at most {high:+%}): the cost or the step time is of another run",
		"more gain than balance has"},
	"late_hosts": {Warn, "ranks wait mostly for late launches, so less time may be saved than predicted",
		"late launches"},
	"placement.no_windows": {Note, "no counts are left to judge on; add those of another run with --judge", ""},
	"placement.no_load":    {Note, "the judged windows hold no load; give another run with --judge", ""},
	"placement.repeats": {Note, "the learned counts recur in {repeats} of {windows:judged window}; judge on another run " +
		"(--judge)", ""},
	"placement.chance": {Note, "too few tokens: max/mean {load:.3} is within chance (95th percentile " +
		"{null:.3})", ""},
	"placement.load": {Note, "the busiest rank's load changes by {change:+%} on other counts (threshold " +
		"{threshold:0%})", ""},
	"placement.time_rises": {Note, "the predicted time rises, though the load is more even", ""},
	"placement.cost":       {Note, costErrs + "; check that the counts are of the traced run", ""},
	"placement.time_open":  {Note, "the predicted time may rise or fall", ""},
	"placement.no_change":  {Note, "no change in {windows:judged window}", ""},
	"placement.worse":      {Note, "worse in {windows:judged window}", ""},
	"placement.mixed":      {Note, "better in {better} of {windows:judged window}, worse in {worse}", ""},

	"no_time.no_evidence": {Note, "no evidence of time: give --trace EXPORT of the same model, or a --campaign of " +
		"several routers", ""},
	"no_time.no_layer": {Note, noTime + "it has no expert time of two or more ranks in a known layer", ""},
	"no_time.few": {Note, "no time is predicted: counts and times share {groups} of the {least} {group}s that a cost " +
		"takes", ""},
	"no_time.ranks": {Note, noTime + "it is of {ranks:rank}; give --ep {ranks}, or a trace on {asked:rank}",
		""},
	"no_time.trace": {Note, noTime + "{doubt:words}", ""},
	"no_time.negative": {Note, "no time is predicted: the times follow no non-negative cost of slots and " +
		"experts", ""},

	// Why a curve of time over imbalance predicts no gain.
	"no_prediction.not_measured": {Note, "not measured: bench --points {point}={tokens}", ""},
	"no_prediction.campaign":     {Note, "the campaign is {verdict}", ""},
	"no_prediction.no_curve": {Note, "the campaign has no curve of time over imbalance: measure one with bench " +
		"--routers", ""},
	"no_prediction.ranks": {Note, "the campaign is of {ranks:rank}, the placement of {asked}", ""},
	"no_prediction.claimed": {Note, "the imbalance of the campaign's arms is claimed: record expert counts (--counts)",
		""},
	"no_prediction.two_arms": {Note, "two arms do not show whether time follows imbalance in a line: measure three " +
		"(--routers)", ""},
	"no_prediction.outside": {Note, "max/mean {from:.3} to {to:.3} is outside the measured {least:.3} to {most:.3}",
		""},
	"no_prediction.no_cost": {Note, "no cost of imbalance is measured there (each 10 % of it: {low:+%} to {high:+%} " +
		"of time)", ""},

	"placements_differ": {Note,
		"this window ran with another placement than the one before: the last one recorded is the baseline", ""},

	// Why two sides of a comparison are no arms of one run.
	"refused.no_kernels": {Doubt,
		"the {arm} side has no kernel time; kernels of CUDA graphs need --cuda-graph-trace=node", ""},
	"refused.no_moe": {Doubt, "the {arm} side has no MoE kernel, so no routing is compared", ""},
	"refused.profilers": {Doubt, "one side was recorded by Nsight Systems and the other by PyTorch's profiler, " +
		"which place kernels by different evidence: record both alike", ""},
	"refused.same_recording": {Doubt, "{rank:#rank} is the same recording on both sides", ""},
	"refused.ranks": {Doubt, "the sides have {common} of {all} ranks in common: {arm} has {ranks}; {other} has " +
		"{others}", ""},
	"refused.layers": {Doubt, "the sides have different layers: {arm} has {layers}; {other} has {others}", ""},
	"refused.loads": {Doubt,
		"the recorded load covers {experts:expert} in the {arm} arm and {others} in the {other} arm", ""},
	"refused.swapped": {Doubt, "the sides are swapped: the first was balanced ({evidence}) and the second was not " +
		"({others})", ""},
	"refused.arm": {Doubt, "the {arm} side records the arm \"{recorded}\" ({evidence})", ""},
	"refused.load": {Doubt, "balance is not proved: the recorded load of the {arm} arm has max/mean {load:.3} over " +
		"ranks in layer {layer} (floor {floor:.3})", ""},
	"refused.unmeasured": {Doubt,
		"balance is not proved: the {arm} side does not record its arm, and {of}" + unmeasured, ""},
	"refused.unbalanced": {Doubt, "balance is not proved: " + overRanks, ""},
	"refused.gates":      {Doubt, "the sides run gates of {here} and {there} experts", ""},
	"refused.tokens":     {Doubt, "the sides hold {here:.0} and {there:.0} tokens per step", ""},
	"refused.requests":   {Doubt, "the sides hold {here:~} and {there:~} requests per step", ""},
	"refused.slots": {Doubt,
		"by their counts, the sides hold {here:.0} and {there:.0} slots per step and layer", ""},
	"refused.outside": {Doubt, "compute outside the MoE blocks, which balance does not change, takes {normal_ns:ns} " +
		"and {perfect_ns:ns} per {per}", ""},
	"refused.kernels": {Doubt, "the experts run in other kernels, mostly {kernel} in the {arm} arm and {others} in " +
		"the {other} arm", ""},

	// What was left out of a comparison, and what its numbers do not show.
	"unequal_ranks.ranks":    {Note, "{left:#rank} excluded: in this arm only", ""},
	"unequal_layers.layers":  {Note, "{left:#layer} excluded: in this arm only", ""},
	"unequal_layers.outside": {Note, "time outside layers excluded: in this arm only", ""},
	"no_steps.compared": {Note,
		"no range marks the steps, so the whole capture counts as one step: arms with different numbers of " +
			"steps are not comparable", ""},
	"outside_steps": {Note, "{share:%} of the kernel time is outside every step and excluded", ""},
	"few_ranks": {Warn,
		"the sides share {common} of the run's {world} ranks, and another one may be the busiest: no gain " +
			"is predicted", "the sides share only {common} of the run's {world} ranks"},
	"kind_not_comparable.work": {Note, "{kind} excluded: the sides differ in {quantities}", "kinds of steps excluded"},
	"kind_not_comparable.other": {Note, "{kind} excluded: the sides are not comparable in them",
		"kinds of steps excluded"},
	"kind_in_one_arm": {Note, "{steps:#step} excluded: the other arm has no steps of their kind ({kernels:MoE kernel})",
		"steps of one arm excluded"},
	"unequal_tokens": {Note,
		"{kind} excluded, number {left}: by their ranges, the other arm has no more of them with as many " +
			"tokens", "steps without a match excluded"},
	"unequal_steps": {Note,
		"no interval of the predicted gain: steps differ in size, and no range says how many tokens each " +
			"holds; the gain takes the steps of both arms for the same batches", ""},
	"warm_up_differs": {Note,
		"the arms exclude different numbers of warm-up steps, so one of them still waits in its first step: " +
			"their GPU time per step is not compared; record more steps", ""},
	"one_launch": {Note,
		"one launch of each arm" + overSteps + "run a paired campaign (bench)", "one launch"},
	"one_launch.both": {Note,
		"both arms in one launch" + overSteps + "run several (bench --treatment hook)", "one launch"},
	"campaign_refused": {Warn, "the campaign is {verdict}: its gain and step time are not used", ""},
	"campaign_step_time.points": {Note, noStepTime + "it measured several loads, whose steps differ: give one of a " +
		"single load", ""},
	"campaign_step_time.no_pair": {Note, noStepTime + "it has no complete pair", ""},
	"campaign_step_time.metric": {Note, noStepTime + "its metric is {name} in {unit}; for tokens per second, add " +
		"--step-tokens, the tokens of all ranks in one step", ""},
	"campaign_step_time.kinds": {Note, noStepTime + "its steps are of all kinds", ""},
	"campaign_step_time.refused": {Note, noStepTime + "its verdict is {verdict}, so its steps may be of other work; " +
		"give --step-time", ""},
	"no_gain_predicted": {Note, "step time unknown, so no gain is predicted: record two whole steps, or give --campaign",
		"step time unknown"},
	"profiler_overhead": {Note, "the profiler makes a step with balanced routing longer by {share:%}", ""},
	"equal_work_unknown": {Warn,
		"less than {share:0%} of the compute is known to lie outside the MoE blocks: too little to show that " +
			"both sides did the same work", "equal work not shown"},
	"other_kernels": {Warn,
		"{share:%} of the kernel time is in kernel families that the other arm did not launch: the arms ran " +
			"different code", "arms ran different kernels"},
	"arm_on_trust": {Warn,
		"the {arm} arm is accepted as labeled; the captures say {said} ({evidence})", ""},
	"arm_unknown.both":     {Note, "neither side records its arm: both are accepted as labeled", "arms as labeled"},
	"arm_unknown.one":      {Note, "only one side records its arm", "arms as labeled"},
	"balance_not_measured": {Note, "{of}" + unmeasured, ""},
	"perfect_not_balanced": {Warn, overRanks + ": uneven hardware, or routing that is not balanced", ""},
	"arms_look_alike":      {Warn, overRanks + ": no imbalance to remove, or the sides are swapped", "arms look alike"},
	"fewer_active_experts": {Warn, active + "fewer weights, a gain that is not balance", ""},
	"more_active_experts":  {Warn, active + "more weights, which can cost more than balance gains", ""},
}

const (
	overSteps = " ({steps} and {others:step}): the spread over steps does not cover the variation between " +
		"launches; for a verdict, "
	noTime     = "no time is predicted from the trace: "
	costErrs   = "the fitted cost errs by {error:%} of the {of}, more than it predicts"
	unmeasured = " is not known on two ranks of both arms, so the traces do not show whether routing was balanced"
	overRanks  = "{of} over ranks has max/mean {here:.3} in the {arm} arm and {there:.3} in the {other} arm"
	active     = "{label} activates {active:n} experts, {other} {others:n} (all layers): at small batches it reads "
	toCome     = "proof of balance: "
	inLog      = "looking for loads in the report, or for the proof line in each rank's log; --counts or --profile " +
		"would measure balance"
	noStepTime  = "the campaign gives no step time: "
	apart       = ": kernels were lost, a capture ended early, or the ranks are of different runs or models"
	differently = "the ranks recorded different layers or steps"
	unplaced    = "most expert time is in no known layer"
	noWait      = "wait and transfer of collectives are unknown: "
	contradict  = "the recorded counts contradict the measured expert time (in layer {layer} "
	otherArm    = "): they may be of the other arm or of another run"
)
