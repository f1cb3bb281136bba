"""One server that changes between the learned and the balanced router, without a GPU: requests go to it over HTTP, and
what its MoE layers themselves chose is recorded outside of the hook.

    MOEBALANCE_CACHE=CACHE python3 segments.py vllm|sglang MODEL OUT [SEGMENTS]     # a line of JSON; exit 1 if a check fails

OUT is a new folder. Each segment changes the router by the control folder, sends requests until the server has answered
(they are in flight while it changes), and then a batch that is checked: in a balanced segment every step of every layer at
the floor, in a learned one the slots of each layer and expert as in a launch that is never told to change.
"""

import atexit
import concurrent.futures
import glob
import json
import os
import random
import runpy
import signal
import subprocess
import sys
import time
import urllib.request

import numpy
import torch

PORT, NEW, REQUESTS, LENGTH = 8193, 4, 4, 24


def record(folder):
    """Keeps the slots per expert of each call, and the hook's sequence. Engines start processes that import this file."""
    import moebalance_hook

    def seen(inner):
        def choose(*args, **given):
            out = inner(*args, **given)
            ids = out.topk_ids if hasattr(out, "topk_ids") else out[1]
            control = moebalance_hook.HOOK.control
            with open(f"{folder}/{os.getpid()}.npy", "ab") as f:
                numpy.save(
                    f,
                    numpy.array(
                        [
                            control.now.sequence if control else 0,
                            moebalance_hook.HOOK.steps.begun,
                            time.time_ns(),
                            *torch.bincount(ids[ids >= 0].long(), minlength=moebalance_hook.HOOK.tables.experts),
                        ]
                    ),
                )
            return out

        return choose

    owner, name = chooser()
    setattr(owner, name, seen(getattr(owner, name)))


def chooser():
    """Where the engine chooses: vLLM 0.26 in the wrapper of its CPU kernel, later releases in a router object."""
    if os.environ["SEGMENTS_ENGINE"] == "sglang":
        from sglang.srt.layers.moe import topk

        return topk, "select_experts"
    try:
        from vllm.model_executor.layers.fused_moe.router.cpu_router import CPURouter

        return CPURouter, "_compute_routing"
    except ImportError:
        from vllm.model_executor.layers.fused_moe import cpu_fused_moe

        return cpu_fused_moe, "select_experts"


if "SEGMENTS_RECORD" in os.environ:
    record(os.environ["SEGMENTS_RECORD"])


def serve(engine, model):
    if engine == "sglang":
        from sglang.launch_server import run_server
        from sglang.srt.server_args import prepare_server_args

        run_server(
            prepare_server_args(
                [
                    "--model-path",
                    model,
                    "--load-format",
                    "dummy",
                    "--device",
                    "cpu",
                    "--port",
                    str(PORT),
                    "--context-length",
                    "256",
                    "--max-running-requests",
                    "16",
                    "--chunked-prefill-size",
                    "512",
                    "--max-total-tokens",
                    "4096",
                    "--disable-radix-cache",
                    "--grammar-backend",
                    "none",
                    "--sampling-backend",
                    "pytorch",
                    "--log-level",
                    "warning",
                ]
            )
        )
    else:
        sys.argv = [
            "vllm",
            "--model",
            model,
            "--load-format",
            "dummy",
            "--port",
            str(PORT),
            "--max-model-len",
            "256",
            "--max-num-seqs",
            "16",
            "--max-num-batched-tokens",
            "512",
            "--enforce-eager",
            "--no-enable-prefix-caching",
        ]
        runpy.run_module("vllm.entrypoints.openai.api_server", run_name="__main__")


class Server:
    """A launch; its output goes to OUT/NAME.log."""

    def __init__(self, engine, model, out, name, control=None):
        self.engine, self.model, self.recorded = engine, model, f"{out}/{name}.recorded"
        os.makedirs(self.recorded)
        variables = {
            **os.environ,
            "SEGMENTS_RECORD": self.recorded,
            "SEGMENTS_ENGINE": engine,
            "MOEBALANCE_COUNTS": f"{out}/{name}.counts",
        }
        if control:
            variables["MOEBALANCE_CONTROL"] = control
        self.log = open(f"{out}/{name}.log", "w")
        self.process = subprocess.Popen(
            [sys.executable, __file__, "serve", engine, model], env=variables, stdout=self.log, stderr=self.log
        )
        atexit.register(self.process.kill)  # also where a check fails: the next server wants the port

    def ready(self):
        for _ in range(600):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=5):
                    return
            except OSError:
                time.sleep(0.5)
            if self.process.poll() is not None:
                break
        sys.exit(f"no server: {self.log.name}")

    def post(self, prompt):
        """The tokens that came back."""
        if self.engine == "sglang":
            path, asked = (
                "generate",
                {"input_ids": prompt, "sampling_params": {"max_new_tokens": NEW, "ignore_eos": True, "temperature": 0}},
            )
        else:
            path, asked = (
                "v1/completions",
                {"model": self.model, "prompt": prompt, "max_tokens": NEW, "ignore_eos": True, "temperature": 0},
            )
        request = urllib.request.Request(
            f"http://127.0.0.1:{PORT}/{path}", json.dumps(asked).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            said = json.load(answer)
        return said["meta_info"]["completion_tokens"] if self.engine == "sglang" else said["usage"]["completion_tokens"]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def steps(self):
        """Each step's sequence, end, and slots per layer and expert."""
        steps = {}
        for path in glob.glob(self.recorded + "/*.npy"):
            with open(path, "rb") as f:
                while f.peek(1):
                    sequence, step, end, *slots = numpy.load(f).tolist()
                    if step:  # not the engine's warm-up
                        at = steps.setdefault(step, [sequence, end, []])
                        at[1] = end
                        at[2].append(slots)
        return [(sequence, end, numpy.array(rows)) for sequence, end, rows in steps.values()]


def main(engine, model, out, segments="200"):
    from driver import Driver

    draw, segments, start = random.Random(1), int(segments), time.time()
    prompts = [[draw.randrange(2, 2000) for _ in range(LENGTH)] for _ in range(REQUESTS)]
    said = {
        "requests": 0,
        "requests_lost": 0,
        "balanced_steps": 0,
        "balanced_rows": 0,
        "balanced_rows_off_floor": 0,
        "learned_segments": 0,
        "learned_slots": 0,
        "learned_slots_elsewhere": 0,
    }

    def batch(server):
        """When it began and ended."""
        begun = time.time_ns()
        with concurrent.futures.ThreadPoolExecutor(REQUESTS) as pool:
            for done in [pool.submit(server.post, prompt) for prompt in prompts]:
                said["requests"] += 1
                said["requests_lost"] += done.exception() is not None or done.result() != NEW
        return begun, time.time_ns()

    os.makedirs(out)
    plain = Server(engine, model, out, "plain")
    plain.ready()
    last = [batch(plain) for _ in range(3)][-1]
    plain.stop()
    as_learned = sum(rows for _, end, rows in plain.steps() if last[0] <= end <= last[1])
    os.makedirs(out + "/control")
    server = Server(engine, model, out, "switched", out + "/control")
    server.ready()
    driver, changes, measured = Driver(out + "/control", 1), [], []
    for segment in range(segments):
        arm = "ABBABAAB"[segment % 8]
        if not measured or measured[-1][0] != arm:
            driver.set(*{"A": ("normal", "off"), "B": ("perfect", "perfect")}[arm])
            begun = time.monotonic()
            while not driver.acknowledged():
                batch(server)
            changes.append(time.monotonic() - begun)
        measured.append((arm, driver.order["sequence"], *batch(server)))
    driver.over.set()
    time.sleep(3)  # the hook writes its counts when the engine is idle
    server.stop()
    steps = server.steps()
    balanced = {sequence for arm, sequence, *_ in measured if arm == "B"}
    for sequence, _, rows in steps:
        if sequence in balanced:
            said["balanced_steps"] += 1
            said["balanced_rows"] += len(rows)
            said["balanced_rows_off_floor"] += int((rows.max(1) != -(-rows.sum(1) // rows.shape[1])).sum())
    for arm, sequence, begun, ended in measured:
        within = [rows for of, end, rows in steps if of == sequence and begun <= end <= ended]
        if arm == "A":
            said["learned_segments"] += 1
            said["learned_slots"] += int(as_learned.sum())
            said["learned_slots_elsewhere"] += int(abs(sum(within) - as_learned).sum()) // 2
    differ = None
    for path in glob.glob(out + "/switched.counts/sequence*/rank0.safetensors"):
        from safetensors.numpy import load_file

        sequence = int(path.split("/")[-2].removeprefix("sequence"))
        if not sequence:  # the engine's router was tested in its first step
            continue
        counted = sum(row.astype(int) for row in load_file(path).values())
        differ = (differ or 0) + int(abs(counted - sum(rows.sum(0) for of, _, rows in steps if of == sequence)).sum())
    good = (
        said["balanced_rows"] > 0
        and said["learned_slots"] > 0
        and not differ
        and not said["requests_lost"] + said["balanced_rows_off_floor"] + said["learned_slots_elsewhere"]
    )
    print(
        json.dumps(
            {
                engine: __import__(engine).__version__,
                "torch": torch.__version__,
                "model": os.path.basename(model),
                "segments": segments,
                "changes": len(changes),
                "slowest_change_s": round(max(changes), 2),
                **said,
                "hook_counts_differ": differ,
                "seconds": round(time.time() - start),
                "passed": good,
            }
        ),
        flush=True,
    )
    sys.exit(not good)


if __name__ == "__main__":
    serve(*sys.argv[2:]) if sys.argv[1] == "serve" else main(*sys.argv[1:])
