package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/testdata/require"
)

const (
	loopFolder  = "testdata/gptoss-ep4-loop/"
	loop        = "../../" + loopFolder
	loopNormal  = loopFolder + "normal.sqlite"
	loopPerfect = loopFolder + "perfect.sqlite"
)

// asked is how the program can be asked, wrongly or for what is not there, or with a gate: the exit code, the
// arguments, and what is said.
const asked = `
2 :: moebalance: no verb: want bench, compare
2 logits :: moebalance logits: no verb: want generate
2 trcae :: did you mean "trace"
2 numbrs :: did you mean "numbers"?
2 --format json :: unknown flag
2 models --brief --format json :: want --brief or --format, not both
2 models nope :: unknown model
2 models -o D/r.PDF :: no result is written as .pdf
2 models -o D :: is a folder
2 hook :: want -o
2 workload more :: no argument
2 workload --ranks 33 :: ranks between 1 and 32
2 workload --layers 128 --experts 1024 :: experts of all layers between 1 and 32768
2 bench :: after --
2 bench --timeout -1s -- x :: want a time with its unit, such as 30s, 10m or 2h
2 bench --pairs '8 pairs' -- x :: "--pairs" flag: want a whole number, such as 8
2 bench --treatment vlm -- x :: unknown treatment "vlm": want trtllm, vllm, hook, sglang, vllm-ascend, lmdeploy,
2 bench --treatment sglang -- env A=1 /bin/vllm bench throughput :: switches nothing in vllm: want --treatment atom or
2 bench --points concurrency=1,8 -- true :: --points concurrency: the command has no {concurrency}
2 bench --points concurrency=1,1 -- true {concurrency} :: none of them twice
2 bench --arm before --arm after -- true :: nothing sets the arm after apart
2 bench --arm before --arm after --treatment vllm -- true {arm} :: without a treatment and without proof
2 bench --arm balancer=greedy -- true :: is neither a router, VARIABLE=VALUE nor a flag
2 bench --server x --ready localhost:1/health -- true :: want a full URL
2 bench --server x -- true :: belong together
2 bench --client x :: --server
2 bench --result {out}/../r.json -- true :: needs {out} in its path
2 bench --metric 'x:ms=(' -- true :: --metric
2 bench --ranks 65537 -- true :: --ranks 65537: want 0 to 65536
2 bench --resume x --pairs 3 :: --pairs
2 bench -- no-such-engine :: "no-such-engine"
2 bench -- env ENABLE_PERFECT_ROUTER=1 D/engine :: remove it
1 bench --resume D/none :: none
1 bench --resume D/damaged :: want a campaign file that opens, have file is not a database (26); what the launches printed is in D/damaged/launches:
1 bench --resume D/empty :: name the folder of --campaign; 'moebalance compare' shows a JSON result
1 bench --campaign D/1 -- D/fails :: no memory
1 bench --campaign D/2 -- D/silent :: printed nothing
1 bench --campaign D/4 --metric speed -- D/engine :: token_throughput
1 bench --resume D/4 :: 0 of 16 launches are kept: fix the cause and resume with 
0 bench --campaign D/4 --pairs 2 -- D/engine ::
0 bench --campaign D/6 --pairs 6 --fail-above 20% -- D/engine ::
3 bench --campaign D/7 --pairs 6 --fail-above 5% -- D/engine :: above 5 %
5 bench --campaign D/8 --pairs 5 --require-verdict -- D/engine :: no verdict
5 bench --campaign D/9 --pairs 6 --require-verdict -- D/uneven {pair} :: inconclusive
4 bench --campaign D/10 --treatment env:OTHER=1 -- D/engine :: balance is not proved: perfect arm, ranks
4 bench --campaign D/11 --pairs 6 -- D/half :: tokens_per_rank (normal 8, perfect 4)
4 bench --campaign D/12 --treatment env:ENABLE_PERFECT_ROUTER=1 --ranks 3 -- D/engine :: no evidence of this rank
2 trace D/4/launches :: is a campaign, not a trace
2 bench dataset --input-mean 0 :: bench dataset:
2 profile :: want a command after --
2 profile --iterations 9-5 -- x ::
2 profile --dry-run -- docker run x prog :: {nsys}
2 profile --perfect --dry-run -- mpirun -n 2 python3 -m sglang.launch_server :: switches nothing in sglang
2 logits plans --tokens=4- :: "--tokens" flag: want whole numbers such as 1,8,64 or the range 1-16 or 1-64:8, have "4-"
2 logits plans --plans diagnal --model deepseek-v3 :: have "diagnal"; did you mean "diagonal"?
1 logits verify D/none :: no cache
2 GENERATE --model deepsek-v3 --ep 8 --target 1.2 :: did you mean "deepseek-v3"
2 GENERATE --model deepseek-v3 --ep 257 :: between 1 and 256
2 GENERATE --model deepseek-v3 --ep 8 --target 0.9 :: at least 1
1 GENERATE --model e8k2 --ep 2 --plan recorded:PLACED :: PLACED: want {"logical_count"
2 GENERATE --model e8k2 --ep 2 --plan diagnal :: have "diagnal"; did you mean "diagonal"?
2 GENERATE --model e8k2 --ep 2 --plan recorded: :: want recorded:FILE
2 GENERATE --model deepseek-v3 --ep 8 --tokens 99999999999 :: tokens per rank
2 GENERATE --model deepseek-v3 --ep 2 --placement PLACED :: --ep or --placement, which
1 GENERATE --model e4k1 --placement PLACED :: no rank holds expert 3
2 place --redundant 3 COUNTS :: --redundant 3: 32 experts and 3 copies do not divide over 4 ranks; try 4
2 place --redundant 132 COUNTS :: want at most 96
2 place --redundant 0,4 --write-vllm x COUNTS :: want one value
2 place --plan best COUNTS :: --plan: want robust or eplb
2 place --redundant 8 --max-moves 5% COUNTS :: have 24 that the redundant experts alone take
2 place --ep 2 --from testdata/counts/eplb.yaml COUNTS :: have 6
2 place --ep 4,64 COUNTS :: --redundant 0: want at most 32 ranks, one for each expert, have 64
2 place --campaign testdata/campaign-deepseek-ep4.json COUNTS :: give a campaign of several routers
2 place --judge COUNTS/. COUNTS :: is named twice
2 place COUNTS testdata/deepseek-ep4-ranks/counts-normal :: want 32 experts
1 place --ep 4 --trace NORMAL D/deep.json :: have load in D/deep.json; the trace is of another model
5 trace --counts D/shallow.json NORMAL :: the counts are of 1 layer, experts run in
2 place --ep 2 --judge D/two.json D/one.json :: want load in the layers of
2 place testdata/counts/expert-location.json :: want the number of ranks
2 place --ep 3 --redundant 2 --nodes 2 --model deepseek-v3 testdata/deepseek-ep4-ranks/counts-normal :: 3 ranks do not divide over 2 nodes
1 place --ep 2 testdata/counts/sglang.log :: want slots per expert
2 place testdata/campaign-qwen3-ep4.json :: read it with: moebalance compare testdata/campaign-qwen3-ep4.json
2 counts --axes layers,layers COUNTS :: "--axes" flag: want each of steps
1 counts --axes tokens,topk COUNTS :: says tokens,topk, but the file holds experts
2 counts http://me:x@host/metrics :: curl -o FILE http://(redacted)@host/metrics
1 counts testdata/counts/nope*.json :: no file matches
2 counts --ep 33 COUNTS :: between 1 and 32 ranks
1 counts --placement testdata/counts/eplb.yaml COUNTS :: give the EP size
2 counts - :: standard input is not read
2 counts NORMAL :: is a trace, not a record of expert counts: read it with: moebalance trace NORMAL
1 counts D/empty.json :: want expert counts, have an object of 0 keys
1 counts D/secret.csv :: have "HF_TOKEN=(redacted)"
1 trace --counts https://host/c.json NORMAL :: standard input and URLs are not read: save it as a file
2 trace --tabel x :: unknown flag: --tabel; did you mean "--table"?
2 trace --format jsn x :: invalid argument "jsn" for "--format" flag: want one of text, json, csv, md
2 trace --table imbalnce NORMAL :: no such table "imbalnce": want one of imbalance, kinds
2 trace --threshold 95 NORMAL :: "--threshold" flag: want a percentage such as 10%
2 trace --summary NORMAL NORMAL :: is an input
2 trace --summary D/s --threshold 5% NORMAL :: --summary replaces the trace: remove --threshold
2 trace --phase 'api_key: sk-1' NORMAL :: invalid argument "api_key: (redacted)" for "--phase" flag: "api_key: (redacted)": want PHASE=REGEX
2 trace --phase 'experts=(' NORMAL :: "--phase" flag: error parsing regexp: missing closing )
2 trace --range step NORMAL :: want a named group
2 trace --rank nope.sqlite=1 NORMAL :: want an export among the 1 given, such as --rank normal.sqlite=0
1 trace --rank a=1 D/none.sqlite :: no such file
2 trace --rank 3000000000 NORMAL :: N from 0 to 1048575
2 trace --model gpt-oss-20b RANK0 :: add --counts
2 trace --counts COUNTS --model deepseek-v3 RANK0 :: the model has 256 experts, the record 32
2 trace --counts COUNTS --model D/top8.json RANK0 :: the model routes to top-8, the record to top-4
2 trace --counts testdata/deepseek-ep4-ranks/counts-normal NORMAL :: do not match
0 trace --counts COUNTS --model gpt-oss-20b RANK0 ::
1 trace D/cut.sqlite :: truncated
1 trace --counts D/none RANK0 :: D/none: want a file, have no such file; check its name
1 compare --campaign D/lines.json NORMAL PERFECT :: have several JSON values, the second from byte 10 on; write a result with
1 models D/cut.json :: want a Hugging Face config.json, have JSON that breaks off, or is wrong, at byte 20; copy it from the checkpoint
1 report testdata/README.md :: have text that begins with "# What we me"; write a result with
1 trace D/prose.sqlite :: want an nsys export (SQLite) or a PyTorch trace (JSON)
1 trace D/lfs.sqlite :: git lfs pull
1 trace D/run.nsys-rep :: nsys export
1 trace RANK0 testdata/deepseek-ep4-ranks/normal.rank0.sqlite :: want exports of one run, one per rank
0 trace --fail-above 0.6 NORMAL ::
3 trace --brief --fail-above 0.5 NORMAL :: expert-time imbalance of layer 1 is 51.5 %, limit 50 %
3 trace --fail-above 0.5 testdata/hf-qwen3-ep4/normal.rank?.json.gz :: expert-time imbalance of layer 2 is 67.9 %
0 trace --fail-above 0.25 PERFECT ::
5 trace --fail-above 0.9 RANK0 testdata/gptoss-ep4-ranks/normal.rank1.sqlite :: 2 of the run's 4 ranks were given
5 trace --fail-above 0.5 testdata/gptoss-graph/node-normal.sqlite :: no layer has expert time
2 compare NORMAL :: give the normal side and the perfect side
4 compare testdata/hf-qwen3-ep4/perfect.rank?.json.gz testdata/hf-qwen3-ep4/normal.rank?.json.gz :: the first was balanced (by its name)
4 compare testdata/hf-qwen3-ep4 testdata/deepseek-ep4-ranks :: normal side: these captures are of both arms by their names
4 compare RANK0 testdata/gptoss-ep4-ranks/normal.rank1.sqlite :: Next: Ranks of one run are judged together.
4 compare testdata/field/results/vllm-two-h200-quantized/mxfp4-marlin/normal testdata/field/results/vllm-two-h200-quantized/fp8-triton/normal :: normal has 0 to 11; perfect has 0 to 3
2 trace --rank 0 testdata/hf-qwen3-ep4/normal.* :: such as --rank normal.rank0.json.gz=0
4 compare PERFECT testdata/gptoss-ep4-ranks/perfect.rank*.sqlite :: the normal side records the arm "perfect"
1 compare testdata/gptoss-graph PERFECT :: have two of rank 0 (by environment); give the files of one run
4 compare NORMAL testdata/deepseek-ep4-ranks/perfect.rank0.sqlite :: 1 of 4 ranks in common
1 compare --counts-perfect testdata/counts/engine.log NORMAL PERFECT :: want slots per expert, have engine log lines
2 compare --counts-normal COUNTS D/traced.json PERFECT :: read it with: moebalance report D/traced.json
2 compare --model gpt-oss-20b NORMAL PERFECT :: add --counts-normal or --counts-perfect
4 compare NORMAL NORMAL :: same recording
1 compare nowhere.sqlite PERFECT :: nowhere.sqlite: want a file, a folder or a pattern, have no such file; check its name
1 counts D/folders :: no expert counts in this folder
1 counts D/nan.json :: nan.json: line 2 is no JSON: it goes wrong at "NaN
1 counts D/nothing.json :: the file is empty: write it again
2 compare NORMAL,NORMAL PERFECT :: named twice
2 compare NORMAL,D/normal.jsonl PERFECT :: of different kinds
2 compare D/normal.jsonl D/perfect.jsonl testdata/pairs.jsonl :: contains neither normal nor perfect
2 compare NORMAL testdata/gptoss-graph/*-normal.sqlite RANK0 :: has perfect in its name
2 compare --arm before NORMAL PERFECT :: want two names
2 compare --step-tokens 5 NORMAL PERFECT :: add --campaign
2 compare --counts-normal x D/normal.jsonl D/perfect.jsonl :: benchmark reports: remove --counts-normal
2 compare --step-tokens 5 testdata/campaign-qwen3-ep4.json :: --campaign
2 trace BENCHa.txt :: a benchmark report, not a trace: read it with: moebalance compare
2 trace testdata/counts/eplb.yaml :: a placement of experts, not a trace: read it with: moebalance counts COUNTS_ --placement
2 place --from testdata/campaign-qwen3-ep4.json COUNTS :: a campaign, not a placement of experts: read it with: moebalance compare
2 counts --placement COUNTS COUNTS :: a record of expert counts, not a placement of experts
2 compare --campaign NORMAL NORMAL PERFECT :: a trace, not a campaign: read it with: moebalance trace
2 logits verify D/traced.json :: a JSON result, not a cache of logits: read it with: moebalance report D/traced.json
0 compare D/own/normal.sqlite D/own/perfect.sqlite ::
4 compare --trust-arms PERFECT NORMAL :: the sides are swapped: the first was balanced (max/mean 1.0
5 compare --require-verdict D/fewer.jsonl D/fewer-p.jsonl :: at least 6
2 compare --trust-arms --metric 'speed:tok/s:higher=speed ([\d.]+)' D/perfect.txt D/normal.txt :: give the normal side first
2 compare D/fewer.jsonl D/perfect.jsonl :: 4 launches and the perfect side 6
4 compare D/perfect.jsonl D/normal.jsonl :: Invalid: the sides are swapped: the first side's reports show balanced routing, the second side's do not.
4 compare D/perfect.jsonl D/normal.jsonl :: Next: Give the learned side first. moebalance compare D/normal.jsonl D/perfect.jsonl
4 compare D/learned.log D/balanced.log :: Attention is 93.9 % uneven over data-parallel ranks
4 compare D/learned.log D/balanced.log :: Next: Spread requests evenly
4 compare --metric 'speed:tok/s:higher=speed ([\d.]+)' D/silent.txt D/faster.txt :: compare --trust-arms --metric 'speed:tok/s:higher=speed ([\d.]+)' D/silent.txt
0 compare --trust-arms --metric 'speed:tok/s:higher=speed ([\d.]+)' D/silent.txt D/faster.txt ::
4 compare --trust-arms D/normal.jsonl D/perfect.jsonl,D/./normal.jsonl :: , on both sides
1 compare --metric ttft_p99 D/normal.jsonl D/perfect.jsonl :: no metric "ttft_p99"
4 compare D/normal.jsonl D/half.jsonl :: tokens_per_rank (normal 1024, perfect 512)
4 compare D/normal.jsonl D/loop.jsonl :: backend (normal grouped, perfect loop)
0 compare --arm a --arm b D/normal.jsonl D/loop.jsonl ::
4 compare FIELDnormal.rank?.json.gz FIELDbalanced.rank?.json.gz :: hold 8192 and 15872 tokens per step
1 compare D/silent.txt D/faster.txt :: silent.txt
2 report :: want at least one
2 report -o D/r.Pdf NORMAL :: no page is written as .pdf: want .html
2 report --png D/prose.sqlite NORMAL :: is a file
1 report D/empty.json :: place, have other JSON; write
1 report -o D/r.html D/bad.csv :: want a whole number from 0 on, have "x"
1 counts D/proof.json :: this is the hook's proof, without counts: give the folder in which the hook wrote it
1 report -o D/r.html D/lunch.json :: have other JSON: kind "lunch"; write a result with
4 report -o D/page.html BENCHa.txt BENCHb.txt :: does not say how it was routed
0 compare --table kinds testdata/campaign-qwen3-ep4.json ::
1 logits plans --model e2k1 --placement D/empty.json :: have a JSON object; write one such as
2 report testdata/campaign-deepseek-ep4.json FIELDcampaign.json :: want the results of one program
`

// uneven is an engine whose gains are 0, 10, … 50 %.
const uneven = `perfect=false; rate=100; [ "$ENABLE_PERFECT_ROUTER" = 1 ] && perfect=true && rate=$((100 + 10 * $1))
echo "{\"perfect_router\":$perfect,\"ranks\":2,\"tokens_per_rank\":8,\"tokens_per_second\":$rate}"
`

// Every wrong question ends with the right code, one line on stderr that helps, and nothing on stdout but a
// result that a gate judged; no output is left behind.
func TestWhatIsAsked(t *testing.T) {
	dir := askedFiles(t)
	t.Chdir("../..")
	t.Setenv("PATH", dir) // no nsys to convert reports with
	progress := regexp.MustCompile(`(?m)^\[.*\n`)
	words := strings.NewReplacer(perfectRouterVariable, perfectRouterVariable, "PLACED", dir+"/placed.json", "D/", dir+"/", "NORMAL", loopNormal, "PERFECT", loopPerfect, "COUNTS_", "COUNTS", "COUNTS",
		"testdata/gptoss-ep4-ranks/counts-normal", "RANK0", "testdata/gptoss-ep4-ranks/normal.rank0.sqlite", "FIELD",
		fieldFolder+"vllm-qwen3-", "BENCH", "testdata/outputs/trtllm-bench-")
	for line := range strings.SplitSeq(strings.TrimSpace(asked), "\n") {
		command, says, _ := strings.Cut(line[1:], " ::")
		args, err := launch.Words(strings.Replace(command, "GENERATE", "logits generate --cache D/cache", 1))
		if err != nil {
			t.Fatal(line, err)
		}
		for i, arg := range args {
			if args[i] = words.Replace(arg); arg == "D" {
				args[i] = dir
			}
		}
		stdout, stderr, code := invoke(t.Context(), args...)
		stderr = progress.ReplaceAllString(stderr, "")
		said, want := stderr, strings.ReplaceAll(words.Replace(strings.TrimSpace(says)), "'", "")
		if code == exitNotComparable || code == exitInconclusive { // the reasons are in the answer, and once
			said += strings.Join(strings.Fields(stdout), " ")
		}
		verb, fault, _ := strings.Cut(stderr, ": ")
		again, _, _ := strings.Cut(fault, ": ") // "moebalance report: report: no file"
		if code != int(line[0]-'0') || !strings.Contains(strings.ReplaceAll(said, "'", ""), want) || strings.HasSuffix(verb, again) && again != "" {
			t.Errorf("%s\nexit %d, %q", line, code, stderr)
		}
		if n := strings.Count(stderr, "\n"); n > 1 || n == 0 && code != exitDone {
			t.Errorf("%s: want one line, have %q", line, stderr)
		}
		if stdout != "" && (code == exitFailed || code == exitUsage) {
			t.Errorf("%s: printed a result: %q", line, stdout)
		}
		if _, err := os.Stat(filepath.Join(dir, "r.html")); err == nil {
			t.Fatalf("%s: left a page behind", line)
		}
	}
}

// askedFiles is a folder with the files of the questions.
func askedFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	row := "[" + strings.Repeat("1,", 31) + "1]"
	var log strings.Builder // of TensorRT-LLM, with two data-parallel ranks
	for i := range 60 {
		fmt.Fprintf(&log, "[08/04/2026-19:08:13] [TRT-LLM] [I] [_torch][RANK %[1]d] iter = %[2]d, global_rank = %[1]d, rank = %[1]d, "+
			"num_scheduled_requests = %[3]d, host_step_time = 12.5ms, prev_device_step_time = 11.5ms, states = "+
			"{'num_ctx_requests': 0, 'num_ctx_tokens': 0, 'num_generation_tokens': %[3]d}\n", i%2, i/2, 32-31*(i%2))
	}
	for name, content := range map[string]string{
		"learned.log": log.String(), "balanced.log": strings.ReplaceAll(log.String(), "11.5", "10.5"),
		"prose.sqlite": "not a database, a sentence\n", "head.sqlite": "SQLite format 3\x00 and no more",
		"lfs.sqlite":   "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
		"run.nsys-rep": "\x00\x01\x02", "rank0.safetensors": "\x78\x00\x00\x00\x00\x00\x00\x00{\"0_0\":{\"dtype\"",
		"normal.txt": "speed 12.5 tok/s\n", "perfect.txt": "speed 14.5 tok/s\n", "empty.json": "{}", "nothing.json": "", "lunch.json": `{"kind":"lunch"}`, "proof.json": `{"schema_version": 1, "kind": "moebalance hook", "rank": 0}`, "cut.json": `{"kind":"trace","cel`,
		"secret.csv": "layer,expert,count\n0,1,HF_TOKEN=hf_1\n", "bad.csv": "layer,expert,count\n0,1,x\n",
		"judged.json": `{"schema_version": 2, "kind": "trace"}`,
		"traced.json": `{"schema_version": 1, "kind": "trace", "cells": []}`, "silent.txt": "speed 12.5 tok/s\n",
		"faster.txt": "speed 14.5 tok/s\n", "folders/in/it": "", "damaged/campaign.sqlite": "no database",
		"lines.json": "{\"a\": 1}\n{}", "placed.json": "[[0,1,0],[2]]",
		"nan.json": "[[1,\nNaN]]", "comma.json": "[[1 2]]", "one.json": "[[5,1]]",
		"deep.json": "[" + strings.Repeat(row+",", 9) + row + "]", "shallow.json": "[" + row + "]",
		"two.json": "[[5,1],[3,3]]",
		"engine":   "#!/bin/sh\n" + engine(100, 120), "fails": "#!/bin/sh\necho no memory >&2; exit 3", "silent": "#!/bin/sh\n", "env": "#!/bin/sh\n",
		"uneven": "#!/bin/sh\n" + uneven,
		"half":   "#!/bin/sh\n" + strings.Replace(engine(100, 120), `"tokens_per_rank":8`, `"tokens_per_rank":4`, 1),
		"top8.json": `{"model_type": "qwen3_moe", "num_experts": 32, "num_experts_per_tok": 8, "hidden_size": 64,` +
			`"moe_intermediate_size": 64, "num_hidden_layers": 3, "decoder_sparse_step": 1, "mlp_only_layers": []}`,
	} {
		put(t, filepath.Join(dir, name), content)
	}
	for _, arm := range []string{"normal", "perfect"} {
		content := get(loop + arm + ".sqlite")
		put(t, filepath.Join(dir, "cut.sqlite"), content[:len(content)/3])
		// the arm was switched by another variable, as after 'bench --treatment env:MY_OWN_ROUTER_SWITCHX=1'
		put(t, filepath.Join(dir, "own", arm+".sqlite"), strings.ReplaceAll(content, perfectRouterVariable, "MY_OWN_ROUTER_SWITCHX"))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "empty"), 0o755))
	normal, perfect := recordedLaunches()
	lines := func(all []string) string { return strings.Join(all, "\n") + "\n" }
	for name, content := range map[string]string{
		"normal.jsonl": lines(normal), "fewer.jsonl": lines(normal[:4]), "perfect.jsonl": lines(perfect),
		"fewer-p.jsonl": lines(perfect[:4]),
		"half.jsonl":    strings.ReplaceAll(lines(perfect), `"tokens_per_rank": 1024`, `"tokens_per_rank": 512`),
		"loop.jsonl":    strings.ReplaceAll(lines(perfect), `"experts": "grouped"`, `"experts": "loop"`),
	} {
		put(t, filepath.Join(dir, name), content)
	}
	return dir
}

// recordedLaunches are the lines of both arms of the recorded campaign.
func recordedLaunches() (normal, perfect []string) {
	text := get("../../testdata/pairs-abba.jsonl")
	for line := range strings.FieldsFuncSeq(string(text), func(r rune) bool { return r == '\n' }) {
		if strings.Contains(line, `"perfect_router": true`) {
			perfect = append(perfect, line)
		} else {
			normal = append(normal, line)
		}
	}
	return normal, perfect
}
