"""Profiled passes of vLLM, without a range of ours, one for each router: what each chose is written as counts.

    MOEBALANCE_CACHE=CACHE MOEBALANCE_COUNTS=any MOEBALANCE_ROUTER=target:1.5 python3 trace.py MODEL RANKS TRACES target:1.5 perfect
    nsys profile -t cuda -s none --cpuctxsw=none --cuda-graph-trace=node -c cudaProfilerApi --capture-range-end=repeat \
        -o TRACES python3 trace.py MODEL RANKS nsys target:1.5 perfect
"""
import json
import time

from launch import Engine, arguments, profiler


def main():
    parser = arguments(__doc__, "traces", "router")
    parser.add_argument("routers", nargs="*")
    parser.add_argument("--batch", default="32,1024,8", help="requests, prompt tokens, new tokens")
    args = parser.parse_args()
    engine = Engine(args, profiler_config=profiler(args.traces))
    batch = [int(n) for n in args.batch.split(",")]
    engine.run(*batch)
    for router in [args.router, *args.routers]:
        if args.routers:
            engine.set_router(router)
        plain, profiled = engine.profile(*batch)
        name = router.partition(":")[0]
        with open(f"{args.traces}.{name}.counts.json", "w") as f:
            json.dump({"logical_count": engine.counted()}, f, separators=(",", ":"))
        print(f"{router}: {plain:.4f} s, profiled {profiled:.4f} s", flush=True)
        time.sleep(5)


if __name__ == "__main__":
    main()
