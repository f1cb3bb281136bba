"""A wide model within one launch of vLLM: speeds under several routers, and whether every layer of every step is at its floor.

    MOEBALANCE_CACHE=CACHE MOEBALANCE_CONTROL=FRESH MOEBALANCE_COUNTS=COUNTS VLLM_ALLOW_INSECURE_SERIALIZATION=1 \\
        python3 width.py MODEL RANKS RESULT.jsonl ROUTER…

One JSON line per measurement, then one per router and kind of step. A gate may give logits of another type to small batches
(DeepSeek-V3's float32): the first line says of which types the hook made tables.
"""
import json
import os
import time

from launch import Engine, arguments
from summary import balance, counted

POINTS = {8: (8, 16, 40, 2), 64: (64, 16, 40, 2), 8192: (1, 8192, 1, 6)}  # tokens of a step: requests, prompt tokens, new tokens, times


def tables(_):
    """In a worker: rows of the tables, by the type of logits."""
    from moebalance_hook import HOOK
    return {str(kind): len(table) for layer in HOOK.layers.values() for kind, table in layer.tables.items()}


def main():
    parser = arguments(__doc__, "result", "router")
    parser.add_argument("routers", nargs="*")
    args = parser.parse_args()
    engine = Engine(args)
    from driver import Driver
    driver = Driver(os.environ["MOEBALANCE_CONTROL"], int(args.ranks))

    def change(router):
        driver.set(router.partition(":")[0], router)
        while not driver.acknowledged():
            engine.run(64, 16, 4)

    with open(args.result, "w") as out:
        for requests, prompt, new, _ in POINTS.values():
            engine.run(requests, prompt, new)
        print(json.dumps({"tables": engine.llm.collective_rpc(tables)}), file=out, flush=True)
        for router in [args.router, *args.routers] * 2:
            change(router)
            for tokens, (requests, prompt, new, times) in POINTS.items():
                engine.run(requests, prompt, new)
                seconds = sum(engine.run(requests, prompt, new) for _ in range(times)) / (times * new)
                print(json.dumps({"router": router, "tokens_per_step": tokens, "seconds_per_step": seconds}), file=out, flush=True)
        change("off")
        driver.over.set()
        time.sleep(4)  # the hook writes when the engine is idle
        found, ranks = counted(os.environ["MOEBALANCE_COUNTS"], POINTS)
        for (router, tokens), slots in sorted(found.items()):
            print(json.dumps({"router": router, "tokens_per_step": tokens, **balance(slots, ranks)}), file=out, flush=True)


if __name__ == "__main__":
    main()
