package caveat

// checks words every case of a check of campaigns; how much it weighs is its status. Under its name
// alone, where that says what it wants, stands in few words what it found.
var checks = map[string]string{
	// Whether the arms may be compared.
	"balance_unproved":          "balance not proved", // as an answer calls a check of the treatment that does not pass
	"balance_claimed":           "balance claimed, not measured",
	"treatment_proved.unproved": "balance is not proved: {missing:;}",
	"treatment_proved.claimed":  "balance claimed for every rank, not measured: expert counts or traces measure it",
	"treatment_proved.chance":   "measured: routing was even in the chance arm and not in the normal arm, on every rank",
	"treatment_proved.measured": "measured: routing was balanced in the perfect arm and not in the normal arm, on " +
		"every rank",
	"only_one_difference": "arms differ otherwise",
	"only_one_difference.other": "the arms also differ in {differences:;}: make them equal, or accept the " +
		"difference by --accept-difference and its name",
	"only_one_difference.within":     "each launch holds all arms: only the switch differs",
	"only_one_difference.unrecorded": "environment, arguments and files of the arms were not recorded",
	"only_one_difference.declared":   "{differences:;}",
	"only_one_difference.same":       "nothing that was recorded differs between the arms",
	"only_one_difference.untreated":  "nothing differs between the arms: the treatment was not applied",
	"equal_work":                     "different work",
	"equal_work.unequal":             "the arms did different work: {differences:;} (tolerance {tolerance:0%})",
	"equal_work.other_lengths": "the arms did different work: {differences:;} (tolerance {tolerance:0%}): fix the " +
		"lengths, such as by --ignore-eos, because balanced text ends elsewhere",
	"equal_work.none":   "no launch reported requests or tokens",
	"equal_work.half":   "{names}: not reported by both launches of {pairs:#pair}",
	"equal_work.equal":  "{names} within {tolerance:0%} in every pair",
	"equal_work.partly": "{names} within {tolerance:0%} in every pair; not reported: {never}",
	"explained_gain":    "gain beyond even ranks",
	"explained_gain.more": "the gain of {gain:+%} is more than even ranks can give (at most {most:+%}: rank load " +
		"max/mean {load:.3} in the normal arm); the rest is of the experts' GEMMs or of something other than balance: " +
		"compare traces of both arms",
	"explained_gain.enough": "even ranks can give up to {most:+%} (rank load max/mean {load:.3} in the normal arm)",
	"one_rank":              "only one rank",
	"one_rank.experts": "one rank: balance acts through the experts alone (how many are active, and how even " +
		"their GEMMs are)",
	"equal_compute.unknown": "the traces of the profiled pair do not tell whether both arms did the same work",
	"equal_compute.same":    "the profiled pair did the same work, as far as its traces tell",
	"equal_compute.other":   "the arms did different work: " + profiled,
	"equal_compute.steps":   profiled + ": the recorded steps differ",
	"kernel_tactics":        "kernel variants differ",
	"kernel_tactics.same":   "both arms of the profiled pair launched the same kernel variants",
	"kernel_tactics.other": "one arm of the profiled pair launched kernel variants that the other did not: " +
		"{variants}; give both arms the same autotuner cache (TLLM_AUTOTUNER_CACHE_PATH for TensorRT-LLM)",
	"sign_of_gain":         "balance slows some load",
	"sign_of_gain.no_gain": "nothing complete to compare",
	"sign_of_gain.slower": "the other arm is slower ({gain:+%}): at small batches balanced routing activates " +
		"more experts than real traffic; see the active experts",
	"sign_of_gain.faster": "the other arm is not slower",

	// Pairs of launches.
	"complete_pairs.open":       "{complete} complete; excluded as incomplete: {pairs:#pair}",
	"complete_pairs.all":        "{complete} complete, none excluded",
	"balanced_order.unrecorded": "no complete pair has a recorded order",
	"balanced_order.uneven":     "{one} first in {first:pair}, {other} first in {second}: drift does not cancel",
	"balanced_order.even":       "{one} first in {first:pair}, {other} first in {second}",
	"order_effect":              "running second matters",
	"order_effect.few":          "too few pairs in both orders",
	"order_effect.shown":        "running second changes the value by {change:+%} (p = {p:p}); the estimate takes it out",
	"order_effect.none":         "running second changes the value by {change:+%} (p = {p:p})",
	"drift":                     "values drift",
	"drift.few":                 "too few measurements",
	"drift.none":                "the values change by {change:+%} from first to last (p = {p:p})",
	"drift.balanced": "the values change by {change:+%} from first to last (p = {p:p}); a balanced order " +
		"cancels it",
	"drift.confounded": "the values change by {change:+%} from first to last (p = {p:p}), and one arm always ran " +
		"first, so drift and gain cannot be separated; alternate the order",
	"outliers":          "outlying launches",
	"outliers.no_pair":  "no complete pair",
	"outliers.noise":    "launches of one arm differ so much that not even twice or half the median is an outlier",
	"outliers.no_noise": "most launches equal the median of their arm, so what is far from it is unknown",
	"outliers.none":     "every launch is within {most:0%} of the median of its arm",
	"outliers.launches": "{launches:#launch}: {changes:+%} from the median of the arm: look for what disturbed the " +
		"machine then, and repeat the campaign; an outlier in one arm moves the estimate",
	"outliers.pairs": "a launch of {pairs:#pair}: {changes:+%} from the median of the arm: look for what disturbed " +
		"the machine then, and repeat the campaign; an outlier in one arm moves the estimate",
	"independent_pairs":     "pairs depend on each other",
	"independent_pairs.few": "too few pairs, or no spread",
	"independent_pairs.alike": "autocorrelation of successive gains {r:.2}: the interval is too narrow; use a " +
		"longer --cool-down, or repeat the campaign another day",
	"independent_pairs.none": "autocorrelation of successive gains {r:.2}",
	"carry_over":             "launches affect the next",
	"carry_over.few":         "too few pairs in both orders",
	"carry_over.shown": "pairs with the {one} arm first differ by {change:+%} from those with the {other} arm " +
		"first (p = {p:p}): a launch affects the next by its arm, and the gain contains that; use --cool-down, or restart " +
		"what stays between launches",
	"carry_over.none": "pairs with the {one} arm first differ by {change:+%} from those with the {other} arm " +
		"first (p = {p:p})",

	// What only the launches themselves show.
	"treatment.chance": "random routing is even only on average: at small batches its busiest rank has more load " +
		"than under balanced routing",
	"launcher.said":        "{messages:;}",
	"same_files":           "files differ",
	"same_files.unnamed":   "no files to hold constant were named (--same)",
	"same_files.changed":   "{file} changed before launch {launch} (SHA-256 {sum}, was {before})",
	"same_files.unchanged": "{files:file} unchanged in every launch",
	"one_session":          "several sessions",
	"one_session.changed":  "{variables} changed between the {sessions} sessions: repeat the campaign in one session",
	"one_session.split":    "interrupted inside {pairs:#pair}: its launches are not adjacent in time",
	"one_session.within":   "each launch holds all arms in one session",
	"one_session.several":  "ran in {sessions:session}, interrupted between pairs only",
	"one_session.one":      "all pairs ran in one session",
	"first_attempts":       "launches repeated",
	"first_attempts.pass":  "every launch finished at its first attempt",
	"first_attempts.warn": "attempts that failed: {failed}, were interrupted: {interrupted}, left processes behind: " +
		"{left}",
	"other_processes":       "other processes on the GPUs",
	"other_processes.pass":  "no other process used the GPUs at the start of a launch",
	"other_processes.warn":  "other processes used the GPUs: {processes}: stop them before the campaign",
	"clocks":                "GPU clocks differ",
	"clocks.pass":           clocks,
	"clocks.warn":           clocks + ": lock the clocks with nvidia-smi --lock-gpu-clocks",
	"report_time.longer":    "launch {launch} has the report of another run: of {reported_ns:ns}, while it took {ns:ns}",
	"other_load":            "other processes ran",
	"other_load.unrecorded": "the CPU use of other processes was not recorded, or the launches were too short",
	"other_load.pass":       otherLoad,
	"other_load.warn":       otherLoad + ": stop them",
	"fixed_rate.client": "the client sends {rate} requests per second, which fixes the throughput: judge a latency, " +
		"such as --metric ttft_mean",
	"one_server": "another server measured",
	"one_server.other": "the client measures {at}, but the server that was started answers at {ready} (--ready): name " +
		"the same in both, or accept it by --accept-difference {at}",
	"one_server.unnamed": "the client names no server, so nothing shows that it measured the one at {ready}",
	"one_server.same":    "the client names the server that was started",
	"equal_slots.unequal": "the arms counted different work: pair {pair}, layer {layer}: {arm} {slots:slot}, {other} " +
		"{others:slot} (tolerance {tolerance:0%})",
	"equal_slots.equal":     "counted slots of every layer within {tolerance:0%} in {pairs:pair}",
	"fresh_prompts":         "prompts repeated",
	"fresh_prompts.drawn":   "each run of the client drew prompts of its own",
	"fresh_prompts.reset":   "the caches were reset before each run of the client (--reset)",
	"fresh_prompts.command": "the command decides whether a segment reuses the caches of the one before",
	"fresh_prompts.same": "every run of the client may send the same requests, which a prefix cache answers faster: " +
		"write {seed} in --client, or give --reset URL",

	"profiled_arm.pass": "the traces of the {arm} launch show that arm",
	"profiled_arm.none": "the traces of the {arm} launch show no arm",
	"profiled_arm.warn": "the traces of the {arm} launch show the {seen} arm",
	"separate_launches.assumed": "each report is taken as one of a start of its own of the server, which a client does " +
		"not say: runs of one start are one launch, so put them in one file",

	// Launches that hold all arms.
	"complete_blocks.all": "{blocks:block} in {launches:launch}, none excluded",
	"complete_blocks.open": "{open:n} of {blocks:block} excluded, where a segment of an arm has no value " +
		"({launches:#launch})",
	"balanced_order.no_block": "no block is complete",
	"balanced_order.reversed": "every block is an order and its reverse: {normal_first} begin with the normal arm, " +
		"{perfect_first} do not",
	"balanced_order.not_reversed": "{launches:#launch}: a block is no order and its reverse, so drift does not cancel",
	"outliers.few_launches":       "too few launches to tell which is far from the others",
	"outliers.no_launch":          "no launch's gain is far from the others",
	"outliers.gains": "{launches:#launch}: the gain is {changes:+%} from that of the other launches; look for what " +
		"was different then",
	"outlying_segments":      "segments far from their median",
	"outlying_segments.few":  "no block is complete",
	"outlying_segments.none": "every segment is within {most:0%} of the median of its arm in its launch",
	"outlying_segments.far": "{segments:segment} in {launches:#launch}: {changes:+%} from the median of the arm in " +
		"the launch; six blocks or more take a median, which single segments do not move",
}

const (
	clocks    = "mean SM clock while busy: {arm} {mhz:.0} MHz, {other} {others:.0} MHz"
	otherLoad = "other processes used at most {used:.1} of {cores:core}, in launch {launch}"
)

const profiled = "{quantity} of the profiled pair: {arm} {here:~}, {other} {there:~} {unit}"
