"""A wide model within one launch of vLLM: for each router the slots that every expert got, over all layers, at decode and prefill.

    MOEBALANCE_CACHE=CACHE MOEBALANCE_COUNTS=any MOEBALANCE_ROUTER=target:1.5 VLLM_ALLOW_INSECURE_SERIALIZATION=1 \\
        python3 width.py MODEL RANKS RESULT.jsonl ROUTER…

One JSON line per measurement. A gate may give logits of another type to small batches (DeepSeek-V3's float32): the first
line says of which types the hook made tables.
"""
import json

from dose import imbalance
from launch import Engine, arguments

POINTS = {"decode": (64, 16, 64, 2), "prefill": (1, 8192, 1, 6)}  # requests, prompt tokens, new tokens, times


def tables(_):
    """In a worker: rows of the tables, by the type of logits."""
    from moebalance_hook import HOOK
    return {str(kind): len(table) for layer in HOOK.layers.values() for kind, table in layer.tables.items()}


def main():
    parser = arguments(__doc__, "result", "router")
    parser.add_argument("routers", nargs="*")
    args = parser.parse_args()
    engine = Engine(args)
    with open(args.result, "w") as out:
        for requests, prompt, new, _ in POINTS.values():
            engine.run(requests, prompt, new)
        print(json.dumps({"tables": engine.llm.collective_rpc(tables)}), file=out, flush=True)
        for router in [args.router, *args.routers] * 2:
            for point, (requests, prompt, new, times) in POINTS.items():
                engine.set_router(router)
                engine.run(requests, prompt, new)
                engine.reset()
                seconds = sum(engine.run(requests, prompt, new) for _ in range(times)) / (times * new)
                counts = engine.counted()
                used = [row for row in counts if any(row)]
                print(json.dumps({"router": router, "point": point, "seconds_per_step": seconds, "layers": len(used),
                                  "layers_with_equal_experts": sum(min(row) == max(row) for row in used),
                                  "expert_max_over_mean": sum(max(row) * len(row) / sum(row) for row in used) / len(used),
                                  "rank_max_over_mean": imbalance(used, int(args.ranks))}), file=out, flush=True)


if __name__ == "__main__":
    main()
