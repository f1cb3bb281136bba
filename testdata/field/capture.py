"""Profiles several routers within one launch of serve.py's engine: a capture for each pair of one and the balanced one.

    MOEBALANCE_CACHE=CACHE MOEBALANCE_CONTROL=FRESH MOEBALANCE_COUNTS=COUNTS python3 capture.py MODEL RANKS TRACES ROUTER…
"""
import os
import sys
import time

from serve import engine, run


def main(model, ranks, traces, *routers):
    llm = engine(model, int(ranks), profiler_config={"profiler": "torch", "torch_profiler_dir": traces, "torch_profiler_with_stack": False})
    from moebalance_hook.control import Driver
    driver = Driver(os.environ["MOEBALANCE_CONTROL"], int(ranks))

    def change(arm, router):
        driver.set(arm, router)
        while not driver.acknowledged():
            run(llm, 64, 1, 4)

    for router in routers:
        change("normal", router)
        for tokens in (8192, 64) * 2:
            print(router, tokens, run(llm, tokens, 2)[0], flush=True)
        llm.start_profile()
        run(llm, 8192, 3, 3)
        run(llm, 64, 4, 5)
        change("perfect", "perfect")
        run(llm, 8192, 5, 3)
        run(llm, 64, 6, 5)
        llm.stop_profile()
        for tokens in (8192, 64) * 2:
            print("perfect", tokens, run(llm, tokens, 2)[0], flush=True)
        time.sleep(3)
    driver.set("normal", "off")
    driver.over.set()
    run(llm, 64, 7, 20)
    time.sleep(3)


if __name__ == "__main__":
    main(*sys.argv[1:])
