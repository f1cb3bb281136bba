package answer

import (
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/placement"
)

// What is said of a placement leads on: to counts to judge it on, to a file for an engine, to what the engine
// needs to load it, and to a measurement; without a placeholder for what the result knows.
func TestPlacementsLeadOn(t *testing.T) {
	trial := place.Placement{Plan: place.Plan{Ranks: 4, Redundant: 2}, Verdict: place.Trial, Baseline: 2, Judged: 1.5,
		Change: -0.25}
	later := trial
	later.Verdict, later.Change, later.Reason = place.NotNow, 0.01, router.Warn("placement", "", "why", "worse",
		"windows", 1)
	open := place.Placement{Plan: place.Plan{Ranks: 4}, Verdict: place.NoVerdict, Judged: router.Undefined(),
		Reason: router.Warn("placement", "", "why", "no_windows")}
	windows := func(p place.Placement) *place.Result {
		return &place.Result{Placements: []place.Placement{p}, Learned: []place.Window{{Name: "a b.json"}},
			Judged: []place.Window{{Name: "c.json"}}}
	}
	const line = "With 2 redundant experts the busiest rank's load falls by 25.0 % on unseen traffic."
	check(t, "trial", OfPlacement(windows(trial), ""), Verdict(place.Trial), line, "",
		"moebalance place --ep 4 --redundant 2 --write-ENGINE NEW.json COUNTS")
	check(t, "written", OfPlacement(windows(trial), "x.json", Written{"sglang", "n.json"}), Verdict(place.Trial), line, "",
		"SGLANG_SERVER --init-expert-location n.json --ep-num-redundant-experts 2; moebalance bench --arm running "+
			"--arm 'placed=--init-expert-location n.json --ep-num-redundant-experts 2' --server SERVER")
	check(t, "two files", OfPlacement(windows(trial), "x.json", Written{"trtllm", "t.yaml"}, Written{"vllm", "n.json"}),
		Verdict(place.Trial), line, "t.yaml is written: OPTIONS.yaml names it as moe_config.load_balancer. n.json is written",
		"--extra_llm_api_options OPTIONS.yaml; moebalance hook -o hook && export PYTHONPATH=$PWD/hook MOEBALANCE_CACHE=")
	check(t, "of vLLM", OfPlacement(windows(trial), "x.json", Written{"vllm", "n.json"}), Verdict(place.Trial), line, "",
		"PYTHONPATH=$PWD/hook MOEBALANCE_CACHE=CACHE moebalance bench --arm running --arm 'placed=MOEBALANCE_PLACEMENT=n.json")
	known := windows(trial)
	known.Engine = placement.VLLM
	check(t, "of a known engine", OfPlacement(known, "x.json"), Verdict(place.Trial), line, "", "--write-vllm NEW.json x.json")
	timed, untimed, u := windows(trial), windows(trial), router.Undefined()
	timed.Placements[0].Moved, timed.Placements[0].Time = 3, &place.TimeChange{Estimate: -0.2, SavedNS: 5e6} // 1 s / 5 ms
	timed.Placements[0].Others = []place.TimeChange{{Estimate: -0.02, Low: -0.03, High: -0.01, Steps: "decode, 64 tokens"},
		{Estimate: 0.001, Low: -0.01, High: 0.012, Steps: "few"}, {Estimate: u, Low: u, High: u, Steps: "other"}}
	check(t, "timed", OfPlacement(timed, ""), Verdict(place.Trial),
		"A step would take 20.0 % less time with 2 redundant experts (the busiest rank's load falls by 25.0 %).",
		"Predicted: each second that loading the 3 moved copies takes is won back in 200 steps.;"+
			"Decode steps of 64 tokens would take 2.0 % less time (−3.0 % to −1.0 %).;"+
			"Steps of few might take more or less time: −1.0 % to +1.2 %.;The time of steps of other cannot be predicted: ", "--write-ENGINE")
	untimed.NoTime = router.Warn("no_time", "", "why", place.NoEvidence)
	check(t, "untimed", OfPlacement(untimed, "x.json"), Verdict(place.Trial), "; time unknown.", "shows what it saves, and when the moves have paid.",
		"place --ep 4 --redundant 2 --trace EXPORT x.json; moebalance place --ep 4 --redundant 2 --write-ENGINE")
	check(t, "later", OfPlacement(windows(later), "x.json"), Verdict(place.NotNow),
		"With 2 redundant experts the busiest rank's load does "+
			"not fall", "Worse in 1 judged window.", "moebalance counts --ep 4 LATER_COUNTS")
	saves := trial
	saves.Verdict, saves.Reason = place.NotNow, router.Warn("placement", "", "why", "time", "least", 0.003, "threshold", 0.01)
	saves.Time = &place.TimeChange{Estimate: -0.013, SavedNS: 5e6}
	check(t, "not worth it", OfPlacement(windows(saves), "x.json", Written{"sglang", "n.json"}), Verdict(place.NotNow),
		"A step would take 1.3 % less time with 2 redundant experts: not worth it (the busiest rank's load falls by 25.0 %).",
		"", "moebalance counts --ep 4 LATER_COUNTS")
	for why, want := range map[string]string{place.Unlike: "Not enough evidence: load explains", place.Contradicts: "Not enough evidence: the counts are of another arm or run than"} {
		other := trial
		other.Verdict, other.Reason = place.NoVerdict, router.Warn("placement", "", "why", why, "explained", 0.1)
		check(t, why, OfPlacement(windows(other), "x.json"), Verdict(place.NoVerdict), want, "", "moebalance profile --")
	}
	flat := open // whatever other counts would say
	flat.Verdict, flat.Reason = place.NotNow, router.Warn("placement", "", "why", place.Flat, "load", 0.5, "time", 0.04, "gain", 0.0004)
	check(t, "flat", OfPlacement(windows(flat), "x.json"), Verdict(place.NotNow), "Nothing to do: load is 50.0 % uneven, but "+
		"expert time only 4.0 %; even ranks would gain under 0.1 %.", "no placement gains more", "--arm THIS --arm OTHER")
	refused := trial
	for _, tokens := range []router.Number{64, 8192} {
		p := gain.Predicted{Point: "tokens", Value: tokens}
		refused.Gains = append(refused.Gains, p.Refuse("ranks", "ranks", 2, "asked", 4))
	}
	check(t, "one reason of two points", OfPlacement(windows(refused), "x.json"), Verdict(place.Trial), "",
		"The campaign predicts no gain: it is of 2 ranks, not of 4.", "")
	check(t, "open", OfPlacement(windows(open), "x.json"), Verdict(place.NoVerdict),
		"Not enough evidence: there are no other counts to judge",
		"", "moebalance place --ep 4 --redundant 0 --judge OTHER_COUNTS x.json")
}
