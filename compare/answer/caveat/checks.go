package caveat

// unchecked words why a check had nothing to look at, for checks without words of their own for it.
var unchecked = map[string]string{
	"few":        "too few launches to tell",
	"no_pair":    "no complete pair to look at",
	"noise":      "the values vary too much to tell",
	"no_noise":   "the values do not vary",
	"unrecorded": "was not recorded",
	"unnamed":    "none were named", // in older results
}

// checks words what a check of campaigns found; how much that weighs is its status. A case
// without words, as most that pass, says nothing beyond its status.
var checks = map[string]string{
	// Whether the arms may be compared.
	"treatment_proved.unproved": "balance is not proved: {missing:;}",
	"treatment_proved.claimed":  "balance claimed for every rank, not measured: expert counts or traces measure it",
	"treatment_proved.chance":   "measured: routing was even in the chance arm and not in the normal arm, on every rank",
	"treatment_proved.measured": "measured: routing was balanced in the perfect arm and not in the normal arm, on every rank",
	"only_one_difference.other": "the arms also differ in {differences:;}: make them equal, or accept the difference by " +
		"--accept-difference and its name",
	"only_one_difference.within":    "each launch holds all arms: only the switch differs",
	"only_one_difference.same":      "the arms run the same command: nothing but their names tells them apart",
	"only_one_difference.untreated": "nothing differs between the arms: the treatment was not applied",
	"equal_work.unequal": "the arms did different work: {differences:;} (tolerance {tolerance:0%})[: fix the {fix}, " +
		"such as by --ignore-eos, because balanced text ends elsewhere]",
	"equal_work.half":  "one arm alone reported {names}, so equal work is not shown",
	"equal_work.none":  "no launch reported requests or tokens",
	"equal_work.equal": "{names} within {tolerance:0%} in every pair",
	"explained_gain.more": "the gain of {gain:+%} is more than even ranks can give (at most {most:+%}: rank load max/mean " +
		"{load:.3} in the normal arm); the rest is of the experts' GEMMs or of something other than balance",
	"fixed_rate.client": "the client sends {rate} requests per second, which fixes the throughput: judge a latency",

	// What is far off.
	"outliers.launches":  "{launches:#launch}: {changes:+%} from the median of the arm: look for what disturbed the machine then",
	"outliers.pairs":     "a launch of {pairs:#pair}: {changes:+%} from the median of the arm",
	"outliers.gains":     "{launches:#launch}: the gain differs by {changes:+%} from the other launches': look for what was different then",
	"copied_values.same": "equal values are copies, or have too few digits: they do not show how launches differ",

	// What only the launches themselves show.
	"launcher.said":           "{messages:;}",
	"first_attempts.warn":     "attempts that failed: {failed}, were interrupted: {interrupted}, left processes behind: {left}",
	"first_attempts.selected": "{failed:n} attempts failed over {launches:launch}: what fails may choose the result, so it decides nothing",
	"other_processes.warn":    "other processes used the GPUs: {processes}: stop them before the campaign",
	"clocks.warn": "mean SM clock while busy: {arm} {mhz:.0} MHz, {other} {others:.0} MHz: lock the clocks with nvidia-smi " +
		"--lock-gpu-clocks",
	"separate_launches.assumed": "each report is taken as one start of the server; runs of one start are one launch, and " +
		"belong in one file",

	"outlying_segments.far": "{segments:segment} in {launches:#launch} left out: {changes:+%} from the median of the arm in the " +
		"launch",
}

// older words checks of results that an older version wrote.
var older = map[string]string{
	"one_rank.experts": "one rank: balance acts through the experts alone",
	"sign_of_gain.slower": "the other arm is slower ({gain:+%}): at small batches balanced routing activates more experts " +
		"than real traffic",
	"drift.balanced": "the values change by {change:+%} from first to last (p = {p:p}); a balanced order cancels it",
}
