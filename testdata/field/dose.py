"""Dose and response within one launch of vLLM: the same batch with routers of different rank max/mean, in an order drawn
anew for every repetition. A router is another content of the hook's tables, so CUDA graphs and everything else stay.

    MOEBALANCE_CACHE=CACHE MOEBALANCE_COUNTS=any MOEBALANCE_ROUTER=target:1.2 python3 dose.py MODEL RANKS RESULT.jsonl ROUTER…

ROUTER is perfect, target:1.5 or recorded:FILE. One JSON line per measurement: the point, tokens per step, the
router, seconds per step, and the rank max/mean that was counted. A prefill step is one request, since several may be
scheduled in several steps. --trace profiles the first two routers at the end, as trace.py does.
"""
import json
import random
import time

from launch import Engine, arguments, profiler

# requests, prompt tokens, new tokens, times in one measurement
POINTS = {"decode:8": (8, 16, 96, 1), "decode:64": (64, 16, 64, 1), "decode:256": (256, 16, 64, 1),
          "prefill:2048": (1, 2048, 1, 24), "prefill:8192": (1, 8192, 1, 10), "prefill:16384": (1, 16384, 1, 6)}


def imbalance(counts, ranks):
    """Max/mean of the ranks' slots, averaged over layers."""
    shares = []
    for row in counts:
        per = len(row) // ranks
        load = [sum(row[r * per:(r + 1) * per]) for r in range(ranks)]
        shares.append(max(load) * ranks / sum(load) if sum(load) else 1)
    return sum(shares) / len(shares)


def main():
    parser = arguments(__doc__, "result", "router")
    parser.add_argument("routers", nargs="+")
    parser.add_argument("--points", default=",".join(POINTS))
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--trace", default="")
    args = parser.parse_args()
    routers, points = [args.router, *args.routers], {name: POINTS[name] for name in args.points.split(",")}
    engine = Engine(args, **{"profiler_config": profiler(args.trace)} if args.trace else {})
    draw = random.Random(1)
    for requests, prompt, new, _ in points.values():
        engine.run(requests, prompt, new)
    with open(args.result, "w") as out:
        for repetition in range(args.repetitions):
            for name, (requests, prompt, new, times) in points.items():
                for router in draw.sample(routers, len(routers)):
                    engine.set_router(router)
                    engine.run(requests, prompt, min(new, 4))
                    engine.reset()
                    seconds = sum(engine.run(requests, prompt, new) for _ in range(times)) / (times * new)
                    kind, _, tokens = name.partition(":")
                    print(json.dumps({"repetition": repetition, "point": kind, "tokens_per_step": int(tokens), "router": router,
                                      "seconds_per_step": seconds, "rank_max_over_mean": imbalance(engine.counted(), int(args.ranks))}), file=out, flush=True)
    for router in routers[:2] if args.trace else []:
        engine.set_router(router)
        plain, profiled = engine.profile(32, 1024, 8)
        with open(f"{args.result}.{router.partition(':')[0]}.counts.json", "w") as f:
            json.dump({"logical_count": engine.counted()}, f, separators=(",", ":"))
        print(f"{router}: {plain:.4f} s, profiled {profiled:.4f} s", flush=True)
        time.sleep(5)


if __name__ == "__main__":
    main()
