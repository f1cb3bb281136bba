package render

import "fmt"

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
