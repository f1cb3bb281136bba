#!/bin/bash
# Campaigns and captures of quantized models over two GPUs, stage by stage; what a stage wrote is in results/.
#
#     quantized.sh prepare "warm:mxfp4-marlin fp8-triton" campaign:mxfp4-marlin captures:mxfp4-marlin …
#
# Wanted in PATH and PYTHONPATH: moebalance, vLLM 0.26.0; beside this file the others of its folder, and prefill_in4096.json.
# UNTIL, in seconds since 1970, is when no further stage begins.
cd "$(dirname "$0")" || exit
export HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 VLLM_DO_NOT_TRACK=1 VLLM_LOGGING_LEVEL=WARNING VLLM_PLUGINS=moebalance
export NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1 NVSHMEM_DISABLE_NVLS=1 VLLM_ALLREDUCE_USE_SYMM_MEM=0
export VLLM_USE_FLASHINFER_SAMPLER=0 VLLM_USE_V2_MODEL_RUNNER=0 VLLM_ALLOW_INSECURE_SERIALIZATION=1 DG_JIT_USE_NVRTC=0 VLLM_DEEP_GEMM_WARMUP=skip
export CUDA_HOME=/usr/local/cuda CUDA_CACHE_PATH=$PWD/jit CUDA_CACHE_MAXSIZE=4000000000 PREFILLS=8 DECODES=48 TORCH_CUDA_ARCH_LIST=9.0a
mkdir -p results logs

say() { echo "== $(date +%T) $*" >>results/queue.log; }

# The model, its cache and the engine of a name.
select_model() {
    port=8101
    case $1 in
    mxfp4-marlin) model=gptoss ENGINE='"moe_backend": "marlin"' ;;
    mxfp4-triton) model=gptoss port=8102 ENGINE='"moe_backend": "auto"' ;;
    fp8-triton) model=ds port=8103 ENGINE='"moe_backend": "triton"'; export VLLM_USE_DEEP_GEMM=0 ;;
    fp8-deepgemm) model=ds port=8104 ENGINE='"moe_backend": "deep_gemm"'; export VLLM_USE_DEEP_GEMM=1 ;;
    esac
    recorded=recorded:$PWD/$model.recorded.json
    export MOEBALANCE_CACHE=$PWD/cache-$model
}

prepare() {
    moebalance hook -o hook
    python3 model.py gpt-oss gptoss 12 quantized
    python3 model.py deepseek-v3 ds 5 quantized
    python3 fold.py prefill_in4096.json 128 12 >gptoss.recorded.json
    python3 fold.py prefill_in4096.json 256 4 >ds.recorded.json
    for model in gptoss ds; do
        for plan in diagonal target:1.5 "recorded:$model.recorded.json"; do
            moebalance logits generate --model $model --ep 2 --mode tep --cache cache-$model --plan "$plan" --brief || return
        done
    done
}

# Compiles what launches need, of all names at once: no time is taken.
warm() {
    for name in "$@"; do
        (
            select_model $name
            mkdir -p fresh-$name
            PYTHONPATH=$PWD/hook:$PYTHONPATH MOEBALANCE_CONTROL=$PWD/fresh-$name ENGINE="{$ENGINE, \"gpu_memory_utilization\": 0.1, \"kv_cache_memory_bytes\": 2000000000}" \
                timeout -s INT 270 python3 serve.py $model 2 0 >logs/warm-$name.log 2>&1
            say "warm $name: $?, $(grep ready logs/warm-$name.log)"
        ) &
    done
    wait
}

campaign() {
    select_model "$1"
    further=(--arm target-1.5=target:1.5)
    [ $model = ds ] && further=() # its recorded load is 1.39 already
    ENGINE="{$ENGINE}" timeout -s INT "${LIMIT:-600}" moebalance bench --treatment hook --launches 5 --seed 41 --ranks 2 --arm "normal=$recorded" \
        "${further[@]}" --points tokens=64,8192 --result '{out}/r.json' --server "python3 serve.py $model 2 $port" \
        --ready http://localhost:$port/health --client "python3 client.py http://localhost:$port {tokens} {seed} {out}/r.json" \
        --campaign campaign-$1 --format json -o results/$1.campaign.json
    echo "exit $?"
    python3 summary.py campaign-$1 results/$1.segments.jsonl results/$1.counts.jsonl
    tar czf results/$1.raw.tgz --exclude='*.safetensors' campaign-$1
}

captures() {
    select_model "$1"
    mkdir -p control-$1
    [ "$1" = mxfp4-marlin ] && export UNWELL="slow-gpu late-host" || unset UNWELL
    PYTHONPATH=$PWD/hook:$PYTHONPATH MOEBALANCE_CONTROL=$PWD/control-$1 MOEBALANCE_COUNTS=$PWD/counts-$1 ENGINE="{$ENGINE}" \
        timeout -s INT 240 python3 capture.py $model 2 $PWD/traces-$1 "$recorded" >logs/captures-$1.log 2>&1
    echo "exit $?"
    for path in traces-$1/*/*.json.gz; do
        name=$(basename "$(dirname "$path")") rank=$(basename "$path" | grep -oE 'rank[_-]?[0-9]+' | grep -oE '[0-9]+' | tail -1)
        [ -n "$rank" ] || continue
        mkdir -p captures-$1/$name
        python3 trim.py "$path" captures-$1/$name/rank$rank.json.gz &
    done
    wait
    cp traces-$1.segments.jsonl captures-$1/segments.jsonl
    tar cf results/$1.captures.tar captures-$1
}

for stage; do
    if [ -n "$UNTIL" ] && [ "$(date +%s)" -gt "$UNTIL" ]; then
        say "$stage: no time left"
        continue
    fi
    say "$stage"
    ${stage%%:*} ${stage#*:} >>results/queue.log 2>&1
    say "$stage done: $?"
done
say end
