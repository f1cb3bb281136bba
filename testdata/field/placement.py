"""Placements within one launch of vLLM, which moves its experts between them: prefill of a batch with contiguous experts, with
the experts as placed, and with contiguous experts and balanced logits, in an order drawn anew for every repetition.

    MOEBALANCE_CACHE=CACHE MOEBALANCE_COUNTS=any MOEBALANCE_ROUTER=recorded:FILE MOEBALANCE_PLACEMENT=keep \
        python3 placement.py MODEL RANKS RESULT.jsonl PLACED.json --engine '{"enable_eplb": true, …}'

PLACED.json is what 'moebalance place --write-vllm' wrote. One JSON line per measurement: the arm, seconds, and the rank
max/mean that was counted.
"""
import json
import os
import random
import time
from pathlib import Path

from dose import imbalance
from launch import Engine, arguments, profiler

BATCH = (256, 1024, 1)  # requests, prompt tokens, new tokens


def main():
    parser = arguments(__doc__, "result", "placed")
    parser.add_argument("--also", nargs="*", default=[], metavar="PLACED.json", help="further placements, each an arm by its file's name")
    parser.add_argument("--launch", type=int, default=0)
    parser.add_argument("--repetitions", type=int, default=8)
    parser.add_argument("--trace", default="", help="at the end, profile contiguous experts into this folder, by the router and balanced")
    args = parser.parse_args()
    router, contiguous = os.environ["MOEBALANCE_ROUTER"], args.result + ".contiguous.json"
    with open(args.placed) as f:
        placed = json.load(f)
    with open(contiguous, "w") as f:
        json.dump({**placed, "initial_global_assignments": {layer: sorted(slots) for layer, slots in placed["initial_global_assignments"].items()}}, f)
    arms = {"contiguous": (router, contiguous), "placed": (router, args.placed), "perfect": ("perfect", contiguous),
            **{Path(path).stem: (router, path) for path in args.also}}
    engine = Engine(args, **{"profiler_config": profiler(args.trace)} if args.trace else {})
    draw = random.Random(args.launch)
    for _ in range(3):
        engine.run(*BATCH)
    with open(args.result, "a") as out:
        for repetition in range(args.repetitions):
            for arm in draw.sample(list(arms), len(arms)):
                use, where = arms[arm]
                engine.set_router(router)
                engine.llm.collective_rpc("moebalance_placement", args=(where,))
                engine.set_router(use)
                engine.run(32, *BATCH[1:])
                engine.reset()
                seconds = engine.run(*BATCH)
                print(json.dumps({"launch": args.launch, "repetition": repetition, "arm": arm, "tokens": BATCH[0] * BATCH[1], "seconds": seconds,
                                  "rank_max_over_mean": imbalance(engine.counted(), int(args.ranks))}), file=out, flush=True)
    for arm in ("contiguous", "perfect") if args.trace else ():
        engine.set_router(router)
        engine.llm.collective_rpc("moebalance_placement", args=(contiguous,))
        engine.set_router(arms[arm][0])
        engine.profile(64, 1024, 1)
        with open(f"{args.trace}/{arm}.counts.json", "w") as f:
            json.dump({"logical_count": engine.counted()}, f, separators=(",", ":"))
        time.sleep(4)
        os.mkdir(f"{args.trace}/{arm}")
        for path in Path(args.trace).glob("*.pt.trace.json*"):
            path.rename(f"{args.trace}/{arm}/{path.name}")


if __name__ == "__main__":
    main()
