"""Profiles several routers within one launch of serve.py's engine: a capture for each pair of one and the balanced one, with the
hook's ranges, then a capture for each of the first pair without them, as an engine without the hook shows itself.

    MOEBALANCE_CACHE=CACHE MOEBALANCE_CONTROL=FRESH MOEBALANCE_COUNTS=COUNTS VLLM_ALLOW_INSECURE_SERIALIZATION=1 \\
        python3 capture.py MODEL RANKS TRACES ROUTER…          # or torchrun, as serve.py

The captures are in TRACES/pair0, TRACES/pair1 …, TRACES/normal and TRACES/perfect.
"""
import contextlib
import glob
import os
import sys
import time

from serve import RANK, agreed, engine, run


def quiet(_):
    """In each worker: no ranges from here on."""
    from moebalance_hook import for_vllm, hook
    for_vllm.named = hook.named = lambda _: contextlib.nullcontext()


def main(model, ranks, traces, *routers):
    llm = engine(model, int(ranks), profiler_config={"profiler": "torch", "torch_profiler_dir": traces, "torch_profiler_with_stack": False})
    from moebalance_hook.control import Driver
    driver = Driver(os.environ["MOEBALANCE_CONTROL"], int(ranks)) if RANK == 0 else None

    def change(arm, router):
        if driver:
            driver.set(arm, router)
        while not agreed(driver.acknowledged() if driver else None):
            run(llm, 64, 1, 4)

    def timed(arm, router):
        change(arm, router)
        for tokens in (8192, 64) * 2:
            print(RANK, arm, router, tokens, run(llm, tokens, 2)[0], flush=True)

    def steps():
        run(llm, 8192, 3, 3)
        run(llm, 64, 4, 5)

    def stop(name):
        llm.stop_profile()
        time.sleep(3)
        agreed(None)
        if RANK == 0:
            os.makedirs(f"{traces}/{name}")
            for path in glob.glob(f"{traces}/*.json*"):
                os.rename(path, f"{traces}/{name}/{os.path.basename(path)}")
        agreed(None)

    for i, router in enumerate(routers):
        timed("normal", router)
        llm.start_profile()
        steps()
        change("perfect", "perfect")
        steps()
        stop(f"pair{i}")
        timed("perfect", "perfect")
    llm.collective_rpc(quiet)
    for arm, router in ("normal", routers[0]), ("perfect", "perfect"):
        change(arm, router)
        steps()
        llm.start_profile()
        steps()
        stop(arm)
    change("normal", "off")
    if driver:
        driver.over.set()
    run(llm, 64, 7, 20)
    time.sleep(3)


if __name__ == "__main__":
    main(*sys.argv[1:])
