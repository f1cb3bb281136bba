"""Profiles several routers within one launch of serve.py's engine: a capture for each pair of one and the balanced one, with the
hook's ranges, then a capture for each of the first pair without them, as an engine without the hook shows itself. Of the same,
without ranges, captures of each case in UNWELL: slow-gpu (a second stream of rank 1's GPU multiplies matrices) and late-host
(rank 1's host waits before each layer of prefill, and before each step of decode).

    MOEBALANCE_CACHE=CACHE MOEBALANCE_CONTROL=FRESH MOEBALANCE_COUNTS=COUNTS VLLM_ALLOW_INSECURE_SERIALIZATION=1 \\
        python3 capture.py MODEL RANKS TRACES ROUTER…          # or torchrun, as serve.py

The captures are in TRACES/pair0, TRACES/pair1 …, TRACES/normal and TRACES/perfect, TRACES/slow-gpu-normal …; what was timed,
without the profiler, in TRACES.segments.jsonl.
"""
import contextlib
import json
import os
import sys
import threading
import time

import torch

from serve import RANK, STEPS, agreed, engine, noted, profiled, run


def quiet(_):
    """In each worker: no ranges from here on."""
    from moebalance_hook import for_vllm, hook
    for_vllm.named = hook.named = lambda _: contextlib.nullcontext()


def slow_gpu(worker, *_):
    """In each worker: rank 1's GPU has other work from here on."""
    if torch.distributed.get_rank() != 1:
        return
    over, stream = threading.Event(), torch.cuda.Stream()
    a = torch.randn(3072, 3072, device="cuda", dtype=torch.bfloat16)

    def work():
        with torch.cuda.stream(stream):
            while not over.is_set():
                for _ in range(4):
                    a @ a
                stream.synchronize()

    thread = threading.Thread(target=work)
    thread.start()
    worker.recover = lambda: (over.set(), thread.join())


def late_host(worker, layer_seconds, step_seconds):
    """In each worker: rank 1's host waits before each layer of prefill, and before each step of decode."""
    if torch.distributed.get_rank() != 1:
        return
    execute, state = worker.execute_model, {"prefill": False}

    def wait(seconds):
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            pass

    def late(attend):
        def attention(*args, **given):
            if state["prefill"]:
                wait(layer_seconds)
            return attend(*args, **given)
        return attention

    def step(scheduler_output, *args, **given):
        state["prefill"] = scheduler_output.total_num_scheduled_tokens > 1000
        if not state["prefill"]:
            wait(step_seconds)
        return execute(scheduler_output, *args, **given)

    held = [x for x in worker.vllm_config.compilation_config.static_forward_context.values() if hasattr(x, "impl")]
    places = [(x, "forward_impl") if hasattr(x, "forward_impl") else (x.impl, "forward") for x in held]
    before = [getattr(x, name) for x, name in places]
    for (x, name), attend in zip(places, before):
        setattr(x, name, late(attend))
    worker.execute_model = step

    def recover():
        worker.execute_model = execute
        for (x, name), attend in zip(places, before):
            setattr(x, name, attend)

    worker.recover = recover


def recovered(worker):
    if torch.distributed.get_rank() == 1:
        worker.recover()


def main(model, ranks, traces, *routers):
    llm = engine(model, int(ranks), profiler_config={"profiler": "torch", "torch_profiler_dir": traces, "torch_profiler_with_stack": False})
    from driver import Driver
    driver = Driver(os.environ["MOEBALANCE_CONTROL"], int(ranks)) if RANK == 0 else None

    def change(arm, router):
        if driver:
            driver.set(arm, router)
        while not agreed(driver.acknowledged() if driver else None):
            run(llm, 64, 1, 4)

    def timed(arm, router, case="healthy"):
        """Seconds of a step, by its tokens."""
        change(arm, router)
        took = {tokens: [run(llm, tokens, 2)[0] / STEPS[tokens] for _ in range(3)][1:] for tokens in (8192, 64)}
        noted(traces, case=case, arm=arm, router=router, seconds_per_step=took)
        return {tokens: min(seconds) for tokens, seconds in took.items()}

    def steps():
        run(llm, 8192, 3, 3)
        run(llm, 64, 4, 5)

    os.makedirs(traces, exist_ok=True)
    for i, router in enumerate(routers):
        healthy = timed("normal", router)
        llm.start_profile()
        steps()
        change("perfect", "perfect")
        steps()
        profiled(llm, traces, f"pair{i}")
        timed("perfect", "perfect")
    llm.collective_rpc(quiet)
    arms = ("normal", routers[0]), ("perfect", "perfect")
    for arm, router in arms:
        change(arm, router)
        steps()
        llm.start_profile()
        steps()
        profiled(llm, traces, arm)
    with open(f"{model}/config.json") as f:
        layer = healthy[8192] / json.load(f)["num_hidden_layers"]
    for case in os.environ.get("UNWELL", "").split():
        llm.collective_rpc({"slow-gpu": slow_gpu, "late-host": late_host}[case], args=(1.5 * layer, healthy[64] / 2))
        for arm, router in arms:
            timed(arm, router, case)
            llm.start_profile()
            steps()
            profiled(llm, traces, f"{case}-{arm}")
        llm.collective_rpc(recovered)
    change("normal", "off")
    if driver:
        driver.over.set()
    run(llm, 64, 7, 20)
    time.sleep(3)


if __name__ == "__main__":
    main(*sys.argv[1:])
