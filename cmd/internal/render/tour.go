package render

import (
	"fmt"
	"strings"

	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/source"
)

// TourBalance is the balance of a cache of logits.
func TourBalance(in source.Item) string { return answer.OfCache(in.Cache, "").Line }

// TourLoad is the load of expert statistics.
func TourLoad(in source.Item) string { return answer.OfCounts(in.Counts, "").Line }

// TourDifference is what balance changes, by traces.
func TourDifference(in source.Item) string { return answer.Slowest(in.Compared) }

// TourGain is the gain of a campaign.
func TourGain(in source.Item) string {
	a := answer.OfCampaign(in.Campaign.Asked())
	line := strings.TrimSuffix(a.Line, ".")
	if len(a.Numbers) > 0 {
		line += " (" + a.Numbers[0].Interval() + ")"
	}
	return line + ": " + string(a.Verdict)
}

// tourNext measures a vLLM; the bench of other engines is in its help.
const tourNext = `next, on a machine with vLLM (for others: %[1]s bench --help); put in your model:
  %[1]s logits generate --model qwen3-30b-a3b --ep 2 --mode tep --cache cache && export MOEBALANCE_CACHE=$PWD/cache
  %[1]s bench --treatment hook --campaign my-campaign --server 'vllm serve Qwen/Qwen3-30B-A3B ` +
	`--tensor-parallel-size 2 --enable-expert-parallel' --ready http://localhost:8000/health ` +
	`--client 'vllm bench serve --base-url http://localhost:8000 --model Qwen/Qwen3-30B-A3B --dataset-name random ` +
	`--random-input-len 1024 --random-output-len 32 --num-prompts 256 --ignore-eos --seed {seed} --save-result ` +
	`--result-dir {out} --result-filename r.json' --result '{out}/r.json'
  %[1]s report -o my-report.html my-campaign
`

// TourNext are the commands to go on with.
func TourNext(again string) string { return fmt.Sprintf(tourNext, again) }
