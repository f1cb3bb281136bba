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

// engines are the commands that measure an engine, by the program that tells that it is
// there. The first one is shown where none is.
var engines = []struct{ name, program, measure string }{
	{"vLLM", "vllm", "%[1]s logits generate --model qwen3-30b-a3b --ep 2 --mode tep --cache cache && export " +
		"MOEBALANCE_CACHE=$PWD/cache\n  %[1]s bench --treatment hook --campaign my-campaign --server 'vllm serve " +
		"Qwen/Qwen3-30B-A3B --tensor-parallel-size 2 --enable-expert-parallel' --ready http://localhost:8000/health " +
		"--client 'vllm bench serve --base-url http://localhost:8000 --model Qwen/Qwen3-30B-A3B --dataset-name random " +
		"--random-input-len 1024 --random-output-len 32 --num-prompts 256 --ignore-eos --seed {seed} --save-result " +
		"--result-dir {out} --result-filename r.json' --result '{out}/r.json'"},
	{"TensorRT-LLM", "trtllm-bench",
		"%[1]s bench dataset --num-requests 256 --input-mean 1024 --output-mean 128 -o data.jsonl && %[1]s bench --pairs 6 " +
			"--campaign my-campaign --same data.jsonl --result '{out}/report.json' -- trtllm-bench --model " +
			"openai/gpt-oss-20b throughput --dataset data.jsonl --report_json '{out}/report.json'"},
}

// TourNext are the commands to go on with for the engine of this machine.
func TourNext(again string, lookPath func(string) (string, error)) string {
	engine, where := engines[0], "on a machine with vLLM (for others: "+again+" bench --help)"
	for _, e := range engines {
		if _, err := lookPath(e.program); err == nil {
			engine, where = e, "with "+e.name+" of this machine"
			break
		}
	}
	return fmt.Sprintf("next, %[2]s; put in your "+
		"model:\n  "+engine.measure+"\n  %[1]s report -o my-report.html my-campaign\n", again, where)
}
