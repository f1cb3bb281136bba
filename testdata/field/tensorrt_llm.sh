#!/bin/bash
# Both arms of TensorRT-LLM's own switch on each MoE backend, with its expert statistics as proof and traces on top.
# Nobody has run this yet: we had no TensorRT-LLM. It needs trtllm-bench, nsys, moebalance, and as many GPUs as RANKS.
#
#     MODEL=openai/gpt-oss-120b RANKS=4 bash tensorrt_llm.sh
#
# The switch acts at the top of MoE.forward (tensorrt_llm/_torch/moe/fused_moe/interface.py) alone: where a model calls run_moe directly, or a
# monolithic backend routes by other logits, both arms are unbalanced although every rank prints its line, and the perfect one may look slower.
# So a verdict of 'balance claimed' is worth nothing here until the counts of the perfect arm below have even ranks in every layer.
set -eu
MODEL=${MODEL:?a model name or folder} RANKS=${RANKS:?the number of GPUs} BACKENDS=${BACKENDS:-CUTLASS TRTLLM TRITON} PAIRS=${PAIRS:-6}

moebalance bench dataset --num-requests 1000 --input-mean 1024 --output-mean 128 -o data.jsonl
for backend in $BACKENDS; do
    printf 'moe_config:\n  backend: %s\nprint_iter_log: true\n' "$backend" >"$backend.yaml"
    command=(trtllm-bench --model "$MODEL" throughput --backend pytorch --dataset data.jsonl --tp "$RANKS" --ep "$RANKS" --extra_llm_api_options "$backend.yaml")
    # Exit 3, 4 and 5 are verdicts; the other backends are tried all the same.
    moebalance bench --pairs "$PAIRS" --ranks "$RANKS" --campaign "campaign-$backend" --result '{out}/report.json' -- \
        "${command[@]}" --report_json '{out}/report.json' || echo "$backend: bench ended with exit $?"
    for arm in normal perfect; do
        perfect=(); [ $arm = normal ] || perfect=(--perfect)
        EXPERT_STATISTIC_ITER_RANGE=100-150 EXPERT_STATISTIC_PATH="counts-$backend-$arm" \
            moebalance profile --iterations 100-150 --dir "traces-$backend-$arm" "${perfect[@]}" -- "${command[@]}"
        moebalance counts --ep "$RANKS" "counts-$backend-$arm"
    done
    moebalance counts --brief --ep "$RANKS" --fail-above 5% "counts-$backend-perfect" ||
        echo "$backend: the perfect arm is not balanced in every layer, or has no counts: its gain says nothing"
    moebalance compare "traces-$backend-normal" "traces-$backend-perfect" | tee "compare-$backend.txt"
    moebalance report -o "report-$backend.html" "campaign-$backend" "traces-$backend-normal" "traces-$backend-perfect"
done
