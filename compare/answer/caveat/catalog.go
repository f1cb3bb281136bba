package caveat

// catalog words what traces, counts, placements and comparisons warn of. A code whose cases
// need different words has an entry for each, behind a dot; a case without one takes the words
// of its code, and a rare code without any is told by its name and values.
var catalog = map[string]entry{
	// What a capture or its export left out.
	"graph_mode": {Note, "{graphs:graph launch} recorded as a whole, so the time of the kernels inside is excluded: " +
		"record with --cuda-graph-trace=node"},
	"graph_capture": {Warn, "{detached:n} of {replayed:replayed kernel} are of graphs captured before the recording " +
		"began, so their layer is unknown: start recording earlier"},
	"loss": {Warn, "the profiler says: {messages}"},
	"lost_kernels": {Note, "{lost:n} of {launches:launch} have no kernel, or one without a duration: the profiler lost it; record " +
		"a shorter capture"},
	"no_launch": {Note, "{kernels:n} of {all:kernel} without a recorded launch: no range of a thread locates them"},
	"missing_ranks": {Note, "only {given} of the run's {world} ranks were given: imbalance and loss are over these only; " +
		"give the other ranks' files, too"},

	"partial_export": {Warn, "the export holds a part of its report ({filter}): export the whole report"},
	"ignored":        {Note, "{ignored:n} of {kernels:kernel} ({time_ns:ns}) are left out, as --phase ignored asks for"},

	// Ranks that do not fit together.
	"ranks_differ": {Note, "ranks {rank} and {other} recorded different layers or steps: kernels " +
		"were lost, a capture ended early, or they are of different runs, models or pipeline stages"},

	// Steps and layers.
	"inferred": {Note, "layers are inferred, no range names them: kernels repeat as {steps} steps of {layers} MoE layers"},
	"blocks": {Note, "layers and steps are unknown: kernels show no regular order of steps; expert blocks are numbered in " +
		"order of launch"},
	"unclear_blocks": {Note, "layers and steps are unknown: kernels show no regular order of steps; NVTX ranges would " +
		"name them"},
	"unclear_blocks.microbatches": {Note, "layers and steps are unknown: two in a row carry the same load, as microbatches do"},
	"rank_groups":                 {Doubt, "not all ranks wait for each other, as groups of their own do not: give each group's files by themselves"},
	"rank_groups.unseen": {Doubt, "collectives behind the experts last {ratio:.1} times as long in some layers as in others, on every " +
		"rank: a rank that was not given arrives last"},
	"selected_steps": {Note, "only steps {first} to {last} count, as --steps asks for; the captures have {least} to {most}"},
	"inferred_beside": {Note, "ranges name the steps; layers beside them are inferred: kernels repeat as {steps} steps of " +
		"{layers} MoE layers"},
	"uncommon_steps": {Note, "{rank:#rank}: {steps:step}, of which all ranks have {common}; the others are excluded"},
	"other_layers": {Note, "ranks {rank} and {other} hold different layers, as pipeline stages do: each layer is judged over " +
		"its own ranks"},
	"no_layers":     {Note, "layers are unknown: all expert time of a step is judged together"},
	"other_arms":    {Note, "only the steps of the {arm} arm count; ranges name steps of {others} too"},
	"switched":      {Note, "{steps:#step} excluded: first after a router switch"},
	"no_steps":      {Note, "no range names a step: the whole capture counts as one step"},
	"partial_steps": {Note, "{steps:#step} excluded as incomplete: some rank lacks a part"},
	"other_kind": {Note, "{steps:#step} excluded: of {kinds} kinds of steps (prefill and decode, or token counts " +
		"more than twofold apart) only the one with most expert time counts"},
	"start_up": {Note, "{steps:#step} excluded as warm-up: GPU time over {factor}× the median of later steps"},

	// Expert time.
	"fused_experts": {Note, "{share:%} of the expert time is in kernels that do {phases} in one ({kernels}): work and " +
		"waiting of a rank cannot be told apart; recorded counts ('trace --counts') give the load"},
	"no_experts": {Note, "no kernel is recognized as an expert GEMM, and no range names experts: record NVTX ranges " +
		"(vLLM --enable-layerwise-nvtx-tracing, SGLang --enable-layerwise-nvtx-marker), or name kernels by --phase " +
		"experts=REGEX"},
	"no_experts.layers": {Note, "{share:%} of the expert GEMM time is in no layer: record more whole steps, or name layers " +
		"by NVTX ranges"},
	"no_experts.steps": {Note, "no step was recorded whole by all ranks: record more steps"},
	"no_experts.time": {Note, "the steps that count hold {expert_ns:ns} of expert time, {share:%} of the GPU time " +
		"without collectives; record more whole steps"},
	"no_experts.rank": {Note, "{rank:#rank}: no expert time in the steps that count: record more whole steps"},
	"no_expert_times": {Note, "one grouped kernel runs all experts of a rank, so no time is measured per expert; " +
		"recorded counts ('trace --counts DIR') would allocate it by load"},
	"unknown_kernels": {Warn, "{share:%} of the GPU time is in kernels whose phase neither a range nor their name " +
		"tells: {kernels}; see 'trace --table kernels'"},

	// Counts beside a trace.
	"counts_contradict": {Warn, "the recorded counts contradict the measured expert time (in layer {layer}): they may be " +
		"of the other arm or of another run"},
	"load_without_time": {Note, "the recorded load is uneven and the expert time is even (in layer {layer})"},
	"counts_layers":     {Warn, "the counts are of {counted:layer}, experts run in {layers}: of another model, or of a part of it"},
	"counts_order": {Note, "the counts name layers {first} to {last}, the trace numbers MoE layers 0 to {most}: taken in this " +
		"order"},
	"counts_assumed_ranks": {Note, "the ranks of the counts are not recorded; assumed: the {ranks} ranks of the trace, " +
		"contiguous experts"},

	// Counts.
	"one_rank":     {Warn, "{level}s {first} to {last} alone have load: the recording of one of {ranks:rank}"},
	"no_ranks":     {Note, "the number of ranks is not recorded, so only expert load is reported"},
	"experts_seen": {Note, "the number of experts is not recorded; {experts} are assumed, the largest that occurs"},
	"no_top_k": {Note, "the experts per token are not recorded, so load is not compared with random routing; name the " +
		"model (--model)"},
	"window": {Note, "each step is a sum over forward passes, in which busy ranks that alternate cancel; the imbalance of " +
		"single passes is at least this"},
	"cumulative":   {Note, "these counters run since the engine started, warm-up included"},
	"dense_layers": {Note, "{layers:#layer} excluded: no step has a slot there, as in dense layers"},
	"idle_steps":   {Note, "{steps:idle step} excluded"},
	"vllm_axis": {Warn, "several vLLM releases computed this balancedness over layers instead of ranks (fixed with pull " +
		"request 51813): check the version"},
	"empty_steps": {Note, "{empty:n} of {steps:step} excluded: no slot in them"},
	"same_sources": {Warn, "all {ranks} ranks recorded the same counts: if they hold the same tokens (tep), the load is " +
		"{ranks} times too large; max/mean is not affected"},
	"padded_tokens":     {Note, "{choices:choice} of padding excluded: they name no expert"},
	"no_placement":      {Warn, "the recorded placement is not used: {error}"},
	"incomplete_passes": {Warn, "{excluded:n} of {passes:pass} excluded: not every one of {ranks:rank} recorded them"},

	// Placements.
	"one_window": {Note, "it is learned from one window: more windows make a placement that lasts"},
	"judged_learned": {Note, "{alike:n} of {windows:judged window} resembled a learned one (within 3 %), which flatters " +
		"every plan: judge on other traffic"},
	"two_phases":        {Note, "prefill and decode are learned together; a placement for one of them is learned from its own counts"},
	"placements_differ": {Warn, "the windows ran under different placements: the last one is the baseline"},
	"global":            {Note, "the experts have no groups that {nodes:node} share out evenly, so EPLB balances over all ranks at once"},
	"raises_load": {Warn, "the plan raises the busiest rank's load by {change:%}: max/mean {judged:.3}, before " +
		"{baseline:.3}"},
	"placement.no_windows": {Note, "no other counts to judge the placement on"},
	"placement.repeats":    {Note, "the learned counts recur in {repeats} of {windows:judged window}"},
	"placement.chance":     {Note, "too few tokens: max/mean {load:.3} is within chance (95th percentile {null:.3})"},
	"placement.load":       {Note, "the busiest rank's load changes by {change:+%} on other counts (threshold {threshold:0%})"},
	"placement.no_change":  {Note, "the busiest rank's load stays the same in {windows:judged window}"},
	"placement.no_load":    {Note, "no judged window has load"},
	"placement.time_rises": {Note, "the predicted time rises"},
	"placement.time_open":  {Note, "the predicted time may rise as well as fall"},
	"placement.unlike":     {Note, "by the trace, load explains {explained:0%} of what the ranks' expert times differ in"},
	"placement.worse":      {Note, "worse in {windows:judged window}"},
	"placement.mixed":      {Note, "better in {better} of {windows:judged window}, worse in {worse}"},

	"no_time.no_layer":  {Note, "no time is predicted from the trace: it shares no layer with expert time with its counts"},
	"no_time.no_replay": {Note, "no time is predicted from the trace: its steps cannot be replayed"},
	"no_time.unlike": {Note, "no time is predicted from the trace: load explains {explained:0%} of what the ranks' expert " +
		"times differ in"},
	"no_time.no_evidence": {Note, "no evidence of time: give --trace EXPORT of the same model"},
	"no_time.ranks":       {Note, "no time is predicted from the trace: it is of {ranks:rank}; give --ep {ranks}"},
	"no_time.trace":       {Note, "no time is predicted from the trace: {doubt:words}"},

	// Why a curve of time over imbalance predicts no gain.
	"no_prediction":          {Note, "the campaign has no curve of time over imbalance: measure one with bench --arm NAME=target:1.2"},
	"no_prediction.campaign": {Note, "the campaign is {verdict}"},
	"no_prediction.ranks":    {Note, "the campaign is of {ranks:rank}, the placement of {asked}"},
	"no_prediction.claimed":  {Note, "the imbalance of the campaign's arms is claimed: record expert counts (--counts)"},
	"no_prediction.outside":  {Note, "max/mean {from:.3} to {to:.3} is outside the measured {least:.3} to {most:.3}"},
	"no_prediction.no_cost": {Note, "no cost of imbalance is measured there (each 10 % of it: {low:+%} to {high:+%} of " +
		"time)"},

	// Why two sides of a comparison are no arms of one run.
	"refused.no_moe": {Doubt, "the {arm} side has no MoE kernel, so no routing is compared"},
	"refused.profilers": {Doubt, "one side was recorded by Nsight Systems and the other by PyTorch's profiler: record " +
		"both alike"},
	"refused.same_recording": {Doubt, "{rank:#rank} is the same recording on both sides"},
	"refused.ranks":          {Doubt, "the sides have {common} of {all} ranks in common: {arm} has {ranks}; {other} has {others}"},
	"refused.layers":         {Doubt, "the sides have different layers: {arm} has {layers}; {other} has {others}"},
	"refused.swapped": {Doubt, "the sides are swapped, the first was balanced ({evidence}) and the second was not " +
		"({others})"},
	"refused.arm": {Doubt, "the {arm} side records the arm \"{recorded}\" ({evidence})"},
	"refused.load": {Doubt, "balance is not proved: the recorded load of the {arm} arm has max/mean {load:.3} over ranks " +
		"in layer {layer} (floor {floor:.3})"},
	"refused.unmeasured": {Doubt, "balance is not proved: the {arm} side does not record its arm, and {of}" + unmeasured},
	"refused.unbalanced": {Doubt, "balance is not proved: " + overRanks},
	"refused.gates":      {Doubt, "the sides run gates of {here} and {there} experts"},
	"refused.tokens":     {Doubt, "the sides hold {here:.0} and {there:.0} tokens per step"},
	"refused.outside": {Doubt, "compute outside the MoE blocks, which balance does not change, takes {normal_ns:ns} and " +
		"{perfect_ns:ns} per {per}"},
	"refused.experts": {Doubt, "on as many tokens, the experts of the {other} arm take {share:%} less time, more than even sizes " +
		"explain: other precision or kernels"},
	"refused.kernels": {Doubt, "the experts run in other kernels, mostly {kernel} in the {arm} arm and {others} in the " +
		"{other} arm"},

	"refused.attention": {Doubt, "attention runs in other kernels, mostly {kernel} in the {arm} arm and {others} in the " +
		"{other} arm"},
	"refused.worlds": {Doubt, "the {arm} side is of {here:rank}, the {other} side of {there}"},
	"refused.one_rank": {Doubt, "the experts of rank {rank} take {by:%} longer in the {arm} arm, and those of no other rank " +
		"less, as they do where load moves: a slower kernel or GPU there looks so"},

	// What was left out of a comparison, and what its numbers do not show.
	"outside_steps": {Note, "{share:%} of the kernel time is outside every step and excluded"},
	"few_ranks": {Warn, "the sides share {common} of the run's {world} ranks, and another one may be the busiest: no gain " +
		"is predicted; give the other ranks' files, too"},
	"one_launch": {Note, "one launch of each arm ({steps} and {others:step}): how much launches differ is assumed, not " +
		"measured; only a campaign (bench) gives a verdict"},
	"one_launch.both": {Note, "both arms in one launch ({steps} and {others:step}): how much launches differ is assumed, " +
		"not measured; run several (bench --treatment hook)"},
	"campaign_refused":   {Warn, "the campaign is {verdict}: its gain and step time are not used"},
	"campaign_step_time": {Note, "the campaign gives no step time: it has several loads, kinds of steps or no complete pair"},
	"campaign_step_time.metric": {Note, "the campaign gives no step time: its metric is {name} in {unit}; for tokens per " +
		"second, add --step-tokens, the tokens of all ranks in one step"},
	"late_launches": {Note, "launches are late, as they may be under a profiler alone; were they in time, the gain would be " +
		"about {gain:+%}"},
	"switch_cost": {Note, "the switch itself costs {ns:ns} per step ({share:%}), as routing takes longer in the perfect arm: the " +
		"gain is without it"},
	"profiler_overhead": {Note, "the profiler makes a step with balanced routing longer by {share:%}"},
	"equal_work_unknown": {Warn, "less than {share:0%} of the compute is known to lie outside the MoE blocks: too little " +
		"to show that both sides did the same work"},
	"arm_on_trust":         {Warn, "the {arm} arm is accepted as labeled; the captures say {said} ({evidence})"},
	"arm_unknown":          {Note, "neither side records its arm: both are accepted as labeled"},
	"arm_unknown.one":      {Note, "only one side records its arm"},
	"balance_not_measured": {Note, "{of}" + unmeasured},
	"slow_gpu": {Warn, "{rank:#rank} takes {by:%} longer than the others for equal dense GEMMs: a slower GPU, or more " +
		"tokens"},
	"perfect_not_balanced": {Warn, overRanks + ": uneven hardware, or routing that is not balanced"},
	"arms_look_alike":      {Warn, overRanks + ": no imbalance to remove, or the sides are swapped"},

	// What checks of campaigns found. Most that pass say nothing beyond their status.
	"treatment_proved.unproved": {"", "balance is not proved: {missing:;}"},
	"treatment_proved.claimed":  {"", "balance claimed for every rank, not measured: expert counts or traces measure it"},
	"treatment_proved.chance":   {"", "measured: routing was even in the chance arm and not in the normal arm, on every rank"},
	"treatment_proved.measured": {"", "measured: routing was balanced in the perfect arm and not in the normal arm, on every rank"},
	"only_one_difference.other": {"", "the arms also differ in {differences:;}: make them equal, or accept the difference by " +
		"--accept-difference and its name"},
	"only_one_difference.within":    {"", "each launch holds all arms: only the switch differs"},
	"only_one_difference.same":      {"", "the arms run the same command: nothing but their names tells them apart"},
	"only_one_difference.untreated": {"", "nothing differs between the arms: the treatment was not applied"},
	"equal_work.setup":              {"", "the arms differ in {differences:;}"},
	"equal_work.unequal": {"", "the arms did different work: {differences:;} (tolerance {tolerance:0%})[: fix the {fix}, " +
		"such as by --ignore-eos, because balanced text ends elsewhere]"},
	"equal_work.half":  {"", "one arm alone reported {names}, so equal work is not shown"},
	"equal_work.none":  {"", "no launch reported requests or tokens"},
	"equal_work.equal": {"", "{names} within {tolerance:0%} in every pair"},
	"explained_gain.more": {"", "the gain of {gain:+%} is more than even ranks can give (at most {most:+%}: rank load max/mean " +
		"{load:.3} in the normal arm); the rest is of the experts' GEMMs or of something other than balance"},
	"fixed_rate.client": {"", "the client sends {rate} requests per second, which fixes the throughput: judge a latency"},

	// What is far off.
	"outliers.launches":  {"", "{launches:#launch}: {changes:+%} from the median of the arm: look for what disturbed the machine then"},
	"outliers.pairs":     {"", "a launch of {pairs:#pair}: {changes:+%} from the median of the arm"},
	"outliers.gains":     {"", "{launches:#launch}: the gain differs by {changes:+%} from the other launches': look for what was different then"},
	"copied_values.same": {"", "equal values are copies, or have too few digits: they do not show how launches differ"},

	// What only the launches themselves show.
	"launcher.said":           {"", "{messages:;}"},
	"first_attempts.warn":     {"", "attempts that failed: {failed}, were interrupted: {interrupted}, left processes behind: {left}"},
	"first_attempts.selected": {"", "{failed:n} attempts failed over {launches:launch}: what fails may choose the result, so it decides nothing"},
	"other_processes.warn":    {"", "other processes used the GPUs: {processes}: stop them before the campaign"},
	"clocks.warn": {"", "mean SM clock while busy: {arm} {mhz:.0} MHz, {other} {others:.0} MHz: lock the clocks with nvidia-smi " +
		"--lock-gpu-clocks"},
	"separate_launches.assumed": {"", "each report is taken as one start of the server; runs of one start are one launch, and " +
		"belong in one file"},

	"outlying_segments.far": {"", "{segments:segment} in {launches:#launch} left out: {changes:+%} from the median of the arm in the " +
		"launch"},

	// What results of older versions say.
	"one_rank.experts": {"", "one rank: balance acts through the experts alone"},
	"sign_of_gain.slower": {"", "the other arm is slower ({gain:+%}): at small batches balanced routing activates more experts " +
		"than real traffic"},
	"drift.balanced": {"", "the values change by {change:+%} from first to last (p = {p:p}); a balanced order cancels it"},
}

const (
	unmeasured = " is not known on two ranks of both arms, so the traces do not show whether routing was balanced"
	overRanks  = "{of} over ranks has max/mean {here:.3} in the {arm} arm and {there:.3} in the {other} arm"
)

// unchecked words why a check had nothing to look at, for checks without words of their own for it.
var unchecked = map[string]string{
	"few":        "too few launches to tell",
	"no_pair":    "no complete pair to look at",
	"noise":      "the values vary too much to tell",
	"no_noise":   "the values do not vary",
	"unrecorded": "was not recorded",
	"unnamed":    "none were named", // in older results
}
