"""Tests of moebalance_hook, run by hook_test.go: python3 hook_test.py CACHES, a folder of caches made by it:
tep4: 32 experts, top-4, 4 ranks; dep4: the same; grouped: 32 experts in 8 groups, top-4 of 4, DeepSeekV3, 8 ranks, tep;
single: 16 experts, top-2, 1 rank. vLLM and SGLang are trees of the same names and signatures as versions 0.26.0's and 0.5.16's."""

import glob
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import types
import unittest
import unittest.mock
import zlib

import torch

CACHES = os.path.abspath(sys.argv.pop(1))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))


def module(name, **members):
    m = sys.modules[name] = types.ModuleType(name)
    vars(m).update(members)
    return m


class Router:
    def __init__(self, top_k, bias=None):
        self.top_k, self.e_score_correction_bias, self.eplb = top_k, bias, None

    def select_experts(self, hidden_states, router_logits, topk_indices_dtype=None, *, input_ids=None):
        weights, ids = router_logits.float().softmax(-1).topk(self.top_k)
        if self.eplb:  # the first physical expert of each
            ids = torch.stack([(self.eplb.slots[0] == e).nonzero()[0, 0] for e in ids.flatten()]).view(ids.shape)
        return weights, ids.int()


class EPLB:
    """vLLM's EplbState with one model of two layers, 32 logical and 36 physical experts on 4 ranks."""

    def __init__(self):
        self.slots = torch.tensor([[*range(32), 0, 1, 2, 3]] * 2)
        self.model_states = {"one": types.SimpleNamespace(physical_to_logical_map=self.slots)}
        self.is_async, self.policy = True, None

    def rearrange(self, is_profile=False, rank_mapping=None):
        assert not self.is_async and torch.is_inference_mode_enabled()
        self.slots.copy_(self.policy.rebalance_experts(torch.ones(2, 32), 36, 1, 1, 4, self.slots))


def fake_vllm(version="0.26.0"):
    class MoERunner:
        def __init__(self, layer, rank, ranks, dp, experts, top_k, bias=None):
            self.layer_name = f"model.layers.{layer}.mlp.experts"
            self.moe_config = types.SimpleNamespace(
                dp_size=dp, ep_size=ranks, ep_rank=rank, tp_rank=0, experts_per_token=top_k
            )
            self.router, self.experts = Router(top_k, bias), experts
            self.routed_experts = types.SimpleNamespace(quant_method=types.SimpleNamespace(is_monolithic=False))

        def _apply_quant_method(self, hidden_states, router_logits, shared_experts_input, input_ids=None):
            if self.routed_experts.quant_method.is_monolithic:  # its kernel chooses
                if hasattr(self.router, "prepare_monolithic_logits"):  # since 0.33
                    router_logits = self.router.prepare_monolithic_logits(router_logits)
                return router_logits.float().topk(self.moe_config.experts_per_token).indices
            return self.router.select_experts(hidden_states=hidden_states, router_logits=router_logits)[1]

        def run(self, tokens):
            learned = torch.randn(tokens, self.experts, generator=torch.Generator().manual_seed(3)).bfloat16()
            return self._apply_quant_method(
                hidden_states=learned, router_logits=learned, shared_experts_input=None, input_ids=None
            )

    class WorkerBase:
        def compile_or_warm_up_model(self):
            for tokens in (2, 1):
                self.execute_model(steps(tokens))
            return "took"

    class WorkerWrapperBase:
        def __init__(self, worker):
            self.worker = worker

        def __getattr__(self, name):
            return getattr(self.worker, name)

    class Worker(WorkerBase):
        parallel_config = types.SimpleNamespace(pipeline_parallel_size=1, distributed_executor_backend="mp")

        def __init__(self, *runners, drafts=None):
            self.runners, held = runners, {r.layer_name: r for r in runners}
            compilation = types.SimpleNamespace(static_forward_context={"model.layers.0.attn": self, **held})
            self.vllm_config = types.SimpleNamespace(speculative_config=drafts, compilation_config=compilation)

        def profile(self, tokens):
            """Which vLLM calls before it warms up, and in these tests later too."""
            chosen = self.run(tokens)
            if not hasattr(type(self), "moebalance_hook"):
                assert WorkerWrapperBase(self).compile_or_warm_up_model() == "took"
            return chosen

        @torch.inference_mode()
        def run(self, tokens):
            return [r.run(tokens) for r in self.runners]

        def execute_model(self, scheduler_output):
            return self.run(scheduler_output.total_num_scheduled_tokens)

        def execute_dummy_batch(self):
            return self.run(1)

        def shutdown(self):
            self.runners = ()

    module("vllm", __version__=version)
    for name in (
        "model_executor",
        "model_executor.layers",
        "model_executor.layers.fused_moe",
        "model_executor.layers.fused_moe.runner",
        "v1",
        "v1.worker",
    ):
        module("vllm." + name)
    module("vllm.model_executor.layers.fused_moe.runner.moe_runner", MoERunner=MoERunner)
    module("vllm.v1.worker.worker_base", WorkerBase=WorkerBase, WorkerWrapperBase=WorkerWrapperBase)
    return MoERunner, Worker


def load(cache, perfect=False, **variables):
    """The module, as a new process with this environment has it."""
    for name in list(os.environ):
        if name.startswith("MOEBALANCE_") or name == "ENABLE_PERFECT_ROUTER":
            del os.environ[name]
    if cache:
        os.environ["MOEBALANCE_CACHE"] = os.path.join(CACHES, cache)
    if perfect:
        os.environ["ENABLE_PERFECT_ROUTER"] = "1"
    os.environ.update({"MOEBALANCE_" + name: value for name, value in variables.items()})
    for name in [n for n in sys.modules if n.partition(".")[0] == "moebalance_hook"]:
        del sys.modules[name]
    import moebalance_hook
    from moebalance_hook import hook

    hook.IDLE = 3600.0  # one process has the hooks of all tests: none writes into the folder of a later one
    return moebalance_hook


def steps(n):
    return types.SimpleNamespace(total_num_scheduled_tokens=n)


def wait_until(condition):
    """A minute at most."""
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.01)
    raise TimeoutError


def max_over_mean(ids, experts, ranks):
    load = torch.bincount(ids.flatten().long() // (experts // ranks), minlength=ranks).double()
    return float(load.max() / load.mean())


class VLLM(unittest.TestCase):
    def start(self, cache, runners, **variables):
        runner, worker = fake_vllm()
        hook = load(cache, **variables)
        hook.vllm()
        hook.vllm()  # every process may load a plugin several times
        return hook, worker(
            *[runner(**{"layer": i, "experts": 32, "top_k": 4, "dp": 1, **r}) for i, r in enumerate(runners)]
        )

    def test_inert(self):
        runner, _ = fake_vllm()
        before = runner._apply_quant_method
        load(None, perfect=True).vllm()
        self.assertIs(runner._apply_quant_method, before)

    def test_every_batch_at_the_floor(self):
        _, worker = self.start("tep4", [{"rank": 0, "ranks": 4}] * 3, perfect=True)
        worker.profile(300)
        for tokens in (1, 2, 3, 7, 64, 300):
            for ids in worker.execute_model(steps(tokens)):
                self.assertTrue(all(len(set(row)) == 4 for row in ids.tolist()))
                expert, rank = (
                    torch.bincount(ids.flatten(), minlength=32),
                    torch.bincount(ids.flatten() // 8, minlength=4),
                )
                self.assertEqual(int(expert.max()), -(-tokens * 4 // 32))
                self.assertEqual(int(rank.max()), tokens)

    def test_layers_begin_at_other_rows(self):
        _, worker = self.start("tep4", [{"rank": 1, "ranks": 4}] * 3, perfect=True)
        first, second, _ = worker.profile(4)
        self.assertFalse(first.sort().values.equal(second.sort().values))

    def test_a_view_of_the_same_memory(self):
        hook, worker = self.start("tep4", [{"rank": 0, "ranks": 4}], perfect=True)
        worker.profile(64)
        (layer,) = hook.HOOK.layers.values()
        learned = torch.zeros(8, 32).bfloat16()
        view = hook.HOOK.logits(layer, learned)
        self.assertEqual(view.untyped_storage().data_ptr(), layer.tables[torch.bfloat16].untyped_storage().data_ptr())
        self.assertEqual(view.dtype, torch.bfloat16)
        self.assertEqual(sorted(set(view.flatten().tolist())), [-32.0, 32.0])

    def test_dep_ranks_together(self):
        ids = []
        for rank in range(4):
            _, worker = self.start("dep4", [{"rank": rank, "ranks": 4, "dp": 4}], perfect=True)
            ids += worker.profile(5)
        self.assertEqual(torch.bincount(torch.cat(ids).flatten() // 8, minlength=4).tolist(), [20] * 4)
        self.assertLessEqual(int(torch.bincount(torch.cat(ids).flatten()).max()), 3)

    def test_tokens_gathered_before_they_are_routed(self):
        ids = []
        for rank in range(4):
            _, worker = self.start("tep4", [{"rank": rank, "ranks": 4, "dp": 4}], perfect=True)
            worker.runners[0].do_naive_dispatch_combine = True
            ids += worker.profile(20)
        self.assertTrue(all(one.equal(ids[0]) for one in ids))
        self.assertEqual(max_over_mean(ids[0], 32, 4), 1)

    def test_off_is_learned(self):
        runner, worker = fake_vllm()
        plain = runner(0, 0, 4, 1, 32, 4).run(50)
        _, worker = self.start("tep4", [{"rank": 0, "ranks": 4}])
        self.assertTrue(worker.profile(50)[0].equal(plain))

    def test_target(self):
        for target in ("1.2", "1.5", "2.0"):
            _, worker = self.start("tep4", [{"rank": 0, "ranks": 4}] * 4, ROUTER="target:" + target)
            ids = worker.profile(2048)
            for one in ids:
                self.assertAlmostEqual(max_over_mean(one, 32, 4), float(target), delta=0.03)
                self.assertAlmostEqual(max_over_mean(one[:64], 32, 4), float(target), delta=0.4)  # by chance
            hot = {int(torch.bincount(one.flatten() // 8).argmax()) for one in ids}
            self.assertGreater(len(hot), 1)  # not the same rank in every layer
        with self.assertRaisesRegex(RuntimeError, "target-3-rank0-any.safetensors is missing, .* --plan target:3'"):
            self.start("tep4", [{"rank": 0, "ranks": 4}], ROUTER="target:3")[1].profile(8)

    def test_target_within_groups(self):
        _, worker = self.start("grouped", [{"rank": 0, "ranks": 8}] * 2, ROUTER="target:1.5")
        for ids in worker.profile(2048):
            self.assertAlmostEqual(max_over_mean(ids, 32, 8), 1.5, delta=0.03)
            self.assertTrue(all(len({e // 4 for e in row}) <= 4 for row in ids.tolist()))

    def test_recorded(self):
        """recorded.json has the counts 1 to 32 in layer 0 and 32 to 1 in layer 1; a third layer begins again."""
        counts = torch.stack([torch.arange(1.0, 33), torch.arange(32.0, 0, -1)])
        _, worker = self.start("tep4", [{"rank": 0, "ranks": 4}] * 3, ROUTER="recorded:" + CACHES + "/recorded.json")
        for layer, ids in enumerate(worker.profile(2048)):
            got, want = torch.bincount(ids.flatten(), minlength=32) / 8192, counts[layer % 2] / counts.sum(-1)[0]
            self.assertLess(float((got - want).abs().max()), 0.004)

    def test_another_router_within_a_launch(self):
        hook, worker = self.start("tep4", [{"rank": 0, "ranks": 4}] * 2, ROUTER="target:1.5", COUNTS="unused")
        extension = hook.WorkerExtension()
        worker.profile(512)
        memory = [layer.tables[torch.bfloat16].data_ptr() for layer in hook.HOOK.layers.values()]
        for spec, want in (("perfect", 1.0), ("target:2.0", 2.0), ("target:1.2", 1.2)):
            extension.moebalance_router(spec)
            before = torch.tensor(extension.moebalance_counts()["counts"])
            for ids in worker.profile(512):
                self.assertAlmostEqual(max_over_mean(ids, 32, 4), want, delta=0.06)
            counted = extension.moebalance_counts()
            self.assertEqual(counted["layers"], [0, 1])
            self.assertEqual((torch.tensor(counted["counts"]) - before).sum(-1).tolist(), [2048, 2048])
        hook.set_router("target:1.2")
        self.assertEqual([layer.tables[torch.bfloat16].data_ptr() for layer in hook.HOOK.layers.values()], memory)
        with self.assertRaisesRegex(RuntimeError, "cannot change from target:1.2 to off"):
            hook.set_router("off")
        perfect, alone = self.start("tep4", [{"rank": 0, "ranks": 4}], perfect=True)
        alone.profile(512)
        perfect.set_router("target:1.5")
        self.assertAlmostEqual(max_over_mean(alone.profile(512)[0], 32, 4), 1.5, delta=0.06)

    def test_counts_and_proof(self):
        with tempfile.TemporaryDirectory() as folder:
            hook, worker = self.start("tep4", [{"rank": 2, "ranks": 4}] * 2, perfect=True, COUNTS=folder)
            worker.profile(100)  # warm-up, not counted
            for tokens in (3, 5, 0, 8):
                worker.execute_model(steps(tokens))
            worker.shutdown()
            from safetensors.torch import load_file

            counts = load_file(os.path.join(folder, "rank2.safetensors"))
            self.assertEqual(sorted(counts), ["0_0", "0_1", "1_0", "1_1", "2_0", "2_1"])
            self.assertEqual([int(counts[f"{i}_1"].sum()) for i in range(3)], [12, 20, 32])
            proof = json.load(open(os.path.join(folder, "moebalance-hook.rank2.json")))
            for key, want in {
                "engine": "vllm",
                "engine_version": "0.26.0",
                "rank": 2,
                "ranks": 4,
                "mode": "tep",
                "arm": "perfect",
                "layers": 2,
                "steps": 3,
                "tokens": 16,
                "steps_recorded": 3,
                "plan": "diagonal/2",
                "correction_bias": ["none"],
            }.items():
                self.assertEqual(proof[key], want, key)
            self.assertTrue(os.path.exists(os.path.join(CACHES, "tep4", proof["entry"])))

    def test_a_rank_whose_requests_have_ended(self):
        with tempfile.TemporaryDirectory() as folder:
            hook, worker = self.start("dep4", [{"rank": 0, "ranks": 4, "dp": 4}], perfect=True, COUNTS=folder)
            worker.profile(10)
            worker.execute_model(steps(3))
            worker.execute_model(steps(0))  # in one step of all ranks with the dummy batch
            worker.execute_dummy_batch()
            worker.execute_model(steps(5))
            worker.shutdown()
            from safetensors.torch import load_file

            counts = load_file(os.path.join(folder, "rank0.safetensors"))
            self.assertEqual([int(counts[f"{i}_0"].sum()) for i in range(len(counts))], [12, 4, 20])

    def test_most_steps_that_have_ended(self):
        with tempfile.TemporaryDirectory() as folder:
            hook, worker = self.start("tep4", [{"rank": 0, "ranks": 4}] * 2, perfect=True, COUNTS=folder, STEPS="2")
            worker.profile(10)
            worker.execute_model(steps(3))
            hook.HOOK.step(5)
            worker.runners[0].run(5)
            hook.HOOK.write()  # in the middle of a step
            worker.runners[1].run(5)
            hook.HOOK.steps.ended = hook.HOOK.steps.begun
            worker.execute_model(steps(8))
            worker.shutdown()
            from safetensors.torch import load_file

            counts = load_file(os.path.join(folder, "rank0.safetensors"))
            self.assertEqual(
                {name: int(row.sum()) for name, row in counts.items()}, {"0_0": 12, "0_1": 12, "1_0": 20, "1_1": 20}
            )

    def test_counts_are_written_when_idle(self):
        with tempfile.TemporaryDirectory() as folder:
            hook, worker = self.start("dep4", [{"rank": 0, "ranks": 4, "dp": 4}], perfect=True, COUNTS=folder)
            sys.modules["moebalance_hook.hook"].IDLE = 0.01
            worker.profile(10)
            path = os.path.join(folder, "rank0.safetensors")
            from safetensors.torch import load_file

            for tokens, want in ((3, [12]), (5, [12, 20]), (6, [12, 20, 24])):
                worker.execute_model(steps(tokens))
                wait_until(lambda: os.path.exists(path) and len(load_file(path)) == len(want))
                counts = load_file(path)
                self.assertEqual([int(counts[f"{i}_0"].sum()) for i in range(len(counts))], want)
            worker.shutdown()
            self.assertEqual(len(load_file(path)), 3)

    def test_logits_of_two_types(self):
        hook, worker = self.start("tep4", [{"rank": 0, "ranks": 4}] * 2, ROUTER="target:1.5")

        def route(spec, dtype, tokens):
            hook.set_router(spec)
            learned = torch.zeros(tokens, 32, dtype=dtype)
            ids = worker.runners[1]._apply_quant_method(learned, learned, shared_experts_input=None)
            return max_over_mean(ids, 32, 4)

        worker.profile(512)
        for layer in hook.HOOK.layers.values():
            layer.captured = True  # the largest batches are captured first
        for spec, want in (("target:1.5", 1.5), ("perfect", 1.0), ("target:1.5", 1.5)):
            self.assertAlmostEqual(route(spec, torch.bfloat16, 512), want, delta=0.06)
            self.assertAlmostEqual(route(spec, torch.float32, 512), want, delta=0.06)

    def test_padding_is_not_counted(self):
        hook, worker = self.start("tep4", [{"rank": 0, "ranks": 4}], COUNTS="unused")
        worker.profile(10)
        before = torch.tensor(hook.HOOK.totals()["counts"][0])
        hook.HOOK.recorder.seen(0, torch.tensor([[0, 5, 31, -1], [-1, -1, -1, -1]], dtype=torch.int32))
        self.assertEqual(
            (torch.tensor(hook.HOOK.totals()["counts"][0]) - before).nonzero().flatten().tolist(), [0, 5, 31]
        )

    def test_placement(self):
        placed = [[*range(31, -1, -1), 0, 1, 2, 3], [*range(32), 4, 5, 6, 7]]
        given = {"record_type": "eplb_initial_mapping", "initial_global_assignments": {"0": placed[0], "1": placed[1]}}
        runner = {"rank": 0, "ranks": 4}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "placed.json")

            def start(text, eplb=True, **variables):
                with open(path, "w") as f:
                    json.dump(text, f)
                hook, worker = self.start("tep4", [runner] * 2, COUNTS=folder, **variables)
                worker.model_runner = types.SimpleNamespace(eplb_state=EPLB() if eplb else None)
                for r in worker.runners:
                    vars(r.moe_config).update(
                        num_experts=36, moe_parallel_config=types.SimpleNamespace(enable_eplb=eplb)
                    )
                    r.router.eplb = worker.model_runner.eplb_state
                worker.profile(64)
                return hook, worker

            for placement, want in ((path, placed), ("keep", [[*range(32), 0, 1, 2, 3]] * 2)):
                hook, worker = start(given, ROUTER="target:2.0", PLACEMENT=placement)
                state = worker.model_runner.eplb_state
                if placement == "keep":
                    worker.execute_model(steps(64))
                else:  # first step of a data-parallel rank without requests
                    worker.execute_dummy_batch()
                self.assertIsNotNone(state.policy)
                self.assertEqual(state.slots.tolist(), want)
                state.rearrange = None  # it has moved them once
                worker.execute_model(scheduler_output=steps(64))
                worker.execute_model(steps(64))
                self.assertTrue(torch.equal(state.policy.rebalance_experts(None, 36), torch.tensor(want)))
                worker.shutdown()
                from safetensors.torch import load_file

                counts = load_file(os.path.join(folder, "rank0.safetensors"))["1_0"]
                self.assertEqual((len(counts), int(counts.sum())), (36, 256))
                rank0 = int(counts[:9].sum())  # its experts have twice the mean, 128, and go to the other end
                self.assertTrue(rank0 < 64 if placement == path else 100 < rank0, rank0)
                proof = json.load(open(os.path.join(folder, "moebalance-hook.rank0.json")))
                self.assertEqual(
                    (proof["placement"], proof["experts"], proof["physical_experts"]),
                    (os.path.basename(placement), 32, 36),
                )
            for text, variables, error in (
                ({"physical_to_logical_map": placed}, {}, "want the file of 'moebalance place --write-vllm'"),
                (
                    {**given, "initial_global_assignments": {"0": placed[0][:32], "1": placed[0][:32]}},
                    {},
                    r"want \[2, 36\] .* have \[2, 32\]; .*num_redundant",
                ),
                (given, {"perfect": True}, "the balanced logits are made for contiguous experts"),
                (given, {"perfect": True, "PLACEMENT": "keep"}, "no redundant experts in the perfect arm"),
                (given, {"eplb": False}, "want vLLM with --enable-eplb"),
            ):
                with self.assertRaisesRegex(RuntimeError, error):
                    start(text, **{"PLACEMENT": path, "ROUTER": "target:2.0", **variables})[1].execute_model(steps(4))
            with self.assertRaisesRegex(RuntimeError, "want it off, or MOEBALANCE_PLACEMENT"):
                start(given, ROUTER="target:2.0")
            with self.assertRaisesRegex(RuntimeError, "made for contiguous experts"):  # which may be ordered any time
                start(given, PLACEMENT=path, CONTROL=folder)[1].execute_model(steps(4))
            hook, worker = start(given, ROUTER="target:2.0", PLACEMENT="keep")
            worker.execute_model(steps(64))
            extension = hook.WorkerExtension()
            extension.model_runner = worker.model_runner
            extension.moebalance_placement(path)
            self.assertEqual(worker.model_runner.eplb_state.slots.tolist(), placed)

    def test_kernels_that_route(self):
        """A monolithic kernel is given the logits as well; what it chooses is unseen: no counts, no proved layer."""
        with tempfile.TemporaryDirectory() as folder:
            hook, worker = self.start("tep4", [{"rank": 0, "ranks": 4}], perfect=True, COUNTS=folder)
            runner = worker.runners[0]
            runner.routed_experts.quant_method.is_monolithic = True
            runner.router.select_experts = None
            given = runner.router.prepare_monolithic_logits = unittest.mock.Mock(side_effect=lambda logits: logits)
            self.assertEqual(max_over_mean(worker.profile(64)[0], 32, 4), 1)
            self.assertEqual(sorted(given.call_args[0][0].unique().tolist()), [-32.0, 32.0])
            worker.execute_model(steps(4))
            worker.shutdown()
            with open(os.path.join(folder, "moebalance-hook.rank0.json")) as f:
                proof = json.load(f)
            self.assertEqual((proof["layers"], proof["layers_proved"], proof["steps_recorded"]), (1, 0, 0))
            self.assertRegex(
                proof["hidden"][0], "SimpleNamespace's kernel chooses the experts, unseen; .* --moe-backend marlin"
            )
            self.assertEqual(sorted(os.listdir(folder)), [".unwritten.rank0", "moebalance-hook.rank0.json"])
        bias = torch.linspace(0, 3, 32)
        _, worker = self.start("grouped", [{"rank": 0, "ranks": 8, "bias": bias}], perfect=True, BIAS="zero")
        worker.runners[0].routed_experts.quant_method.is_monolithic = True
        with self.assertRaisesRegex(RuntimeError, "routes in its experts' kernel, which may keep a copy of the bias"):
            worker.profile(8)
        self.assertEqual(float(bias.max()), 3)

    def test_correction_bias(self):
        bias = torch.linspace(0, 0.4, 32)
        self.start("grouped", [{"rank": 0, "ranks": 8, "bias": bias}], perfect=True)[1].profile(8)
        wide = torch.linspace(0, 3, 32)
        with self.assertRaisesRegex(RuntimeError, "spreads over 3"):
            self.start("grouped", [{"rank": 0, "ranks": 8, "bias": wide}], perfect=True)[1].profile(8)
        for perfect in (True, False):
            zeroed = wide.clone()
            self.start("grouped", [{"rank": 0, "ranks": 8, "bias": zeroed}], perfect=perfect, BIAS="zero")[1].profile(8)
            self.assertEqual(float(zeroed.abs().max()), 0)

    def test_refusals(self):
        with self.assertRaisesRegex(
            RuntimeError, "--ep 2 --mode tep.*have e32k4: 32 experts, top-4, Renormalize, 4 ranks, tep"
        ):
            self.start("tep4", [{"rank": 0, "ranks": 2}], perfect=True)[1].profile(8)
        with self.assertRaisesRegex(RuntimeError, "want all data parallel"):
            self.start("tep4", [{"rank": 0, "ranks": 4, "dp": 2}], perfect=True)[1].profile(8)
        _, worker = self.start("tep4", [{"rank": 0, "ranks": 4}], perfect=True)
        worker.parallel_config = types.SimpleNamespace(pipeline_parallel_size=2, distributed_executor_backend="mp")
        with self.assertRaisesRegex(RuntimeError, "vLLM 0.26.0: pipeline stages.*want pipeline_parallel_size 1"):
            worker.profile(8)
        hook, worker = self.start("tep4", [{"rank": 0, "ranks": 4}], perfect=True, COUNTS="unused")
        hook.HOOK.recorder.add = lambda ids, row, experts: None
        with self.assertRaisesRegex(RuntimeError, "not those that were chosen"):
            worker.profile(8)
        _, worker = self.start("tep4", [{"rank": 0, "ranks": 4}], perfect=True)
        with (
            unittest.mock.patch.dict(os.environ, {"VLLM_MOE_ROUTING_SIMULATION_STRATEGY": "uniform_random"}),
            self.assertRaisesRegex(RuntimeError, "its own simulation"),
        ):
            worker.profile(8)
        _, worker = self.start("tep4", [{"rank": 0, "ranks": 4}], perfect=True)
        worker.runners[0].moe_config.is_sequence_parallel = True
        with self.assertRaisesRegex(RuntimeError, "sequence-parallel MoE"):
            worker.profile(8)
        for attributes, text in (({"pcp_size": 2}, "prefill context parallelism"), ({"zero": 1}, "has zero experts")):
            _, worker = self.start("tep4", [{"rank": 0, "ranks": 4}], perfect=True)
            if "zero" in attributes:
                worker.runners[0].router.zero_expert_type = "identity"
            vars(worker.runners[0].moe_config).update(attributes)
            with self.assertRaisesRegex(RuntimeError, "vLLM 0.26.0: .*" + text):
                worker.profile(8)
        for method in ("mtp", "eagle", "ngram"):
            _, worker = self.start("tep4", [{"rank": 0, "ranks": 4}], perfect=True)
            worker.vllm_config.speculative_config = types.SimpleNamespace(method=method)
            with self.assertRaisesRegex(RuntimeError, rf"speculative decoding \({method}\) routes drafts"):
                worker.profile(8)
        with self.assertRaisesRegex(RuntimeError, "unknown router"):
            self.start("tep4", [{"rank": 0, "ranks": 4}], ROUTER="even")[1].profile(8)
        _, worker = self.start("tep4", [{"rank": 0, "ranks": 4}], perfect=True)
        with (
            unittest.mock.patch("torch.compiler.is_compiling", return_value=True),
            self.assertRaisesRegex(RuntimeError, "--enforce-eager"),
        ):
            worker.profile(8)
        runner, _ = fake_vllm()
        runner._apply_quant_method = lambda self, x, logits: None
        with self.assertRaisesRegex(
            RuntimeError,
            "vLLM 0.26.0: want MoERunner._apply_quant_method with hidden_states, router_logits, have self, x, logits; vLLM 0.26",
        ):
            load("tep4", perfect=True).vllm()

    def test_layers_that_never_come_by(self):
        """Kernels that route and run the experts in one are not MoERunner's; found where the engine has run all layers."""

        class DeepGemmMegaMoEExperts:
            pass

        for runners, perfect in ((2, True), (0, True), (2, False)):
            for profiled in (True, False):  # vLLM on a CPU runs nothing before the first step
                _, worker = self.start("tep4", [{"rank": 0, "ranks": 4}] * runners, perfect=perfect)
                held = worker.vllm_config.compilation_config.static_forward_context
                held["model.layers.7.ffn.experts"] = DeepGemmMegaMoEExperts()
                type(worker).compile_or_warm_up_model = lambda self: "took"

                def start():
                    if profiled:
                        worker.run(8)
                    sys.modules["vllm.v1.worker.worker_base"].WorkerWrapperBase(worker).compile_or_warm_up_model()
                    worker.execute_model(steps(3))

                if perfect:
                    text = r"vLLM 0.26.0: model.layers.7.ffn.experts \(DeepGemmMegaMoEExperts\) routes past MoERunner"
                    with self.assertRaisesRegex(RuntimeError, text):
                        start()
                else:
                    start()
        _, worker = self.start("tep4", [], perfect=True)  # a model without
        with self.assertRaisesRegex(RuntimeError, "every layer routes past MoERunner"):
            worker.profile(8)
            worker.execute_model(steps(3))

    def test_more_tokens_than_captured(self):
        hook, worker = self.start("tep4", [{"rank": 0, "ranks": 4}], perfect=True)
        worker.profile(8)
        worker.profile(900)  # eager: the table grows
        next(iter(hook.HOOK.layers.values())).captured = True
        with self.assertRaisesRegex(RuntimeError, "MOEBALANCE_TOKENS"):
            worker.profile(4000)
        _, worker = self.start("tep4", [{"rank": 0, "ranks": 4}], perfect=True, TOKENS="4000")
        worker.profile(8)
        next(iter(sys.modules["moebalance_hook"].HOOK.layers.values())).captured = True
        worker.profile(4000)


class Switch(unittest.TestCase):
    """Several routers within one launch, by MOEBALANCE_CONTROL."""

    def start(self, control, runners=2, normal="", bias=None, **variables):
        kind, worker = fake_vllm()
        hook = load(
            "tep4" if bias is None else "grouped",
            CONTROL=control,
            **({"ROUTER": normal} if normal else {}),
            **variables,
        )
        hook.vllm()
        ranks = 4 if bias is None else 8
        worker = worker(*[kind(i, 0, ranks, 1, 32, 4, bias) for i in range(runners)])
        worker.profile(64)
        return hook, worker

    def order(self, folder, sequence, router, arm="perfect", seconds=3600.0, text=None):
        with open(os.path.join(folder, "new"), "w") as f:
            f.write(
                text
                or json.dumps(
                    {
                        "sequence": sequence,
                        "arm": arm,
                        "router": router,
                        "expires_ns": time.time_ns() + int(seconds * 1e9),
                    }
                )
            )
        os.replace(os.path.join(folder, "new"), os.path.join(folder, "arm.json"))
        sys.modules["moebalance_hook"].HOOK.control.next = 0.0  # now, rather than a moment later

    def answer(self, folder):
        with open(os.path.join(folder, "ack.rank0.json")) as f:
            return json.load(f)

    def test_arms_and_answers(self):
        plain = fake_vllm()[0](0, 0, 4, 1, 32, 4).run(50)
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as counts:
            hook, worker = self.start(folder, COUNTS=counts)
            self.assertEqual([layer.proved for layer in hook.HOOK.layers.values()], [True, True])
            self.assertTrue(worker.execute_model(steps(50))[0].equal(plain))
            memory = [layer.tables[torch.bfloat16].data_ptr() for layer in hook.HOOK.layers.values()]
            for sequence, router in enumerate(("perfect", "off", "target:2.0", "perfect", "off"), 1):
                self.order(folder, sequence, router, arm="arm of " + router)
                for tokens in (50, 64):
                    ids = worker.execute_model(steps(tokens))
                if router == "off":
                    self.assertTrue(worker.execute_model(steps(50))[0].equal(plain))
                else:
                    self.assertAlmostEqual(
                        max_over_mean(ids[0], 32, 4), {"perfect": 1.0, "target:2.0": 2.0}[router], delta=0.1
                    )
                ack = self.answer(folder)
                self.assertEqual(
                    [ack[key] for key in ("sequence", "arm", "router", "rank", "ranks")],
                    [sequence, "arm of " + router, router, 0, 1],
                )
                self.assertNotIn("error", ack)
            self.assertEqual([layer.tables[torch.bfloat16].data_ptr() for layer in hook.HOOK.layers.values()], memory)
            worker.shutdown()
            from safetensors.torch import load_file

            for sequence, slots in ((0, [200]), (1, [200, 256]), (2, [200, 256, 200]), (4, [200, 256])):
                recorded = load_file(f"{counts}/sequence{sequence}/rank0.safetensors")
                self.assertEqual([int(recorded[f"{i}_1"].sum()) for i in range(len(recorded) // 2)], slots)
                even = all(int(row.max()) == -(-int(row.sum()) // 32) for row in recorded.values())
                self.assertEqual(even, sequence in (1, 4))
                with open(f"{counts}/sequence{sequence}/moebalance-hook.rank0.json") as f:
                    proof = json.load(f)
                self.assertEqual(
                    [proof[key] for key in ("sequence", "arm", "layers_proved", "steps", "steps_recorded")],
                    [sequence, "perfect" if sequence in (1, 4) else "normal", 2, len(slots), len(slots)],
                )

    def test_where_nothing_new_is_captured(self):
        """The same operators in all arms: what a graph captured reads the flag and the tables again."""
        with tempfile.TemporaryDirectory() as folder:
            hook, worker = self.start(folder, runners=1)
            (layer,) = hook.HOOK.layers.values()
            learned = torch.randn(8, 32, generator=torch.Generator().manual_seed(1)).bfloat16()
            self.assertTrue(hook.HOOK.logits(layer, learned).equal(learned))
            flag = hook.HOOK.tables.flag
            self.order(folder, 1, "perfect")
            worker.execute_model(steps(8))
            self.assertIs(hook.HOOK.tables.flag, flag)
            self.assertEqual(sorted(set(hook.HOOK.logits(layer, learned).flatten().tolist())), [-32.0, 32.0])

    def test_all_ranks_at_one_step(self):
        plain = fake_vllm()[0](0, 0, 4, 1, 32, 4).run(50)
        with tempfile.TemporaryDirectory() as folder:
            hook, worker = self.start(folder)
            worker.execute_model(steps(50))
            hook.HOOK.world = 0, 2

            def other(sequence, step):
                with open(os.path.join(folder, "seen.rank1.json"), "w") as f:
                    json.dump({"sequence": sequence, "steps": step}, f)

            def balanced():
                return not worker.execute_model(steps(50))[0].equal(plain)

            self.order(folder, 1, "perfect")
            self.assertEqual([balanced() for _ in range(20)], [False] * 20)  # until the other one has seen it
            self.assertFalse(os.path.exists(os.path.join(folder, "ack.rank0.json")))
            other(1, hook.HOOK.steps.begun + 2)
            self.assertEqual([balanced() for _ in range(12)], [False] * 10 + [True] * 2)
            ack = self.answer(folder)
            self.assertEqual((ack["sequence"], ack["ranks"], "error" in ack), (1, 2, False))
            self.order(folder, 2, "off")
            other(2, hook.HOOK.steps.begun - 30)
            self.assertEqual([balanced() for _ in range(9)], [True] * 8 + [False])
            self.order(folder, 3, "perfect")
            self.assertEqual([balanced() for _ in range(12)], [False] * 12)
            other(3, hook.HOOK.steps.begun - 12)  # which this one sees too late
            self.assertTrue(balanced())
            self.assertIn("changed 4 steps after other ranks", self.answer(folder)["error"])

    def test_a_driver_that_dies(self):
        plain = fake_vllm()[0](0, 0, 4, 1, 32, 4).run(50)
        now = [time.time_ns()]
        clock = unittest.mock.patch("time.time_ns", lambda: now[0])
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as counts, clock:
            _, worker = self.start(folder, COUNTS=counts)
            self.order(folder, 7, "perfect", seconds=0.2)
            worker.execute_model(steps(50))
            self.assertEqual(self.answer(folder)["router"], "perfect")
            self.order(folder, 7, "perfect", seconds=0.4)  # renewed
            now[0] += 250_000_000
            self.assertFalse(worker.execute_model(steps(50))[0].equal(plain))
            now[0] += 250_000_000
            self.assertTrue(worker.execute_model(steps(50))[0].equal(plain))
            ack = self.answer(folder)
            self.assertEqual((ack["sequence"], ack["router"], ack["expired"]), (7, "off", True))
            self.order(folder, 7, "perfect")  # too late for this sequence
            self.assertTrue(worker.execute_model(steps(50))[0].equal(plain))
            self.order(folder, 8, "perfect")
            self.assertFalse(worker.execute_model(steps(50))[0].equal(plain))
            worker.shutdown()
            self.assertEqual(sorted(glob.glob1(counts, "s*")), ["sequence7", "sequence7.expired", "sequence8"])
            from safetensors.torch import load_file

            even = [
                {int(row.max()) for row in load_file(f"{counts}/{name}/rank0.safetensors").values()} == {7}
                for name in sorted(glob.glob1(counts, "s*"))
            ]
            self.assertEqual(even, [True, False, True])

    def test_orders_that_cannot_be_obeyed(self):
        with tempfile.TemporaryDirectory() as folder:
            hook, worker = self.start(folder, normal="target:1.5")
            for sequence, order, error in (
                (1, {"router": "even"}, "unknown router 'even'"),
                (2, {"router": "target:9"}, "target-9-rank0-any.safetensors is missing"),
                (3, {"router": "recorded:" + folder + "/none.json"}, "none.json"),
                (3, {"text": "{"}, "arm.json"),
                (3, {"text": "[]"}, "arm.json"),
                (3, {"text": '{"sequence": "4", "arm": "a", "router": "perfect", "expires_ns": 1}'}, "whole numbers"),
            ):
                self.order(folder, sequence, **{"router": "", **order})
                self.assertAlmostEqual(max_over_mean(worker.execute_model(steps(64))[0], 32, 4), 1.5, delta=0.1)
                ack = self.answer(folder)
                self.assertEqual((ack["sequence"], ack["router"]), (sequence, "target:1.5"))
                self.assertIn(error, ack["error"])
            self.order(folder, 5, "perfect")
            worker.execute_model(steps(64))
            self.assertNotIn("error", self.answer(folder))

    def test_correction_bias(self):
        """Untouched where the learned logits route; what it outweighs is refused, or it is zero in the other arms alone."""
        wide = torch.linspace(0, 3, 32)
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(RuntimeError, "spreads over 3"):
                self.start(folder, bias=wide.clone())
            bias = wide.clone()
            _, worker = self.start(folder, bias=bias, BIAS="zero")
            self.assertTrue(bias.equal(wide))
            for sequence, router in enumerate(("perfect", "off"), 1):
                self.order(folder, sequence, router)
                worker.execute_model(steps(8))
                self.assertTrue(bias.equal(wide if router == "off" else torch.zeros(32)))

    def test_refusals(self):
        with tempfile.TemporaryDirectory() as folder:
            _, worker = fake_vllm()
            hook = load("tep4", perfect=True, CONTROL=folder)
            hook.vllm()
            with self.assertRaisesRegex(RuntimeError, "want ENABLE_PERFECT_ROUTER unset"):
                worker(
                    sys.modules["vllm.model_executor.layers.fused_moe.runner.moe_runner"].MoERunner(0, 0, 4, 1, 32, 4)
                ).profile(8)
            with open(os.path.join(folder, "ack.rank0.json"), "w") as f:
                f.write("{}")
            with self.assertRaisesRegex(RuntimeError, "want a fresh folder for each launch, have .*ack.rank0.json"):
                self.start(folder)[1].execute_model(steps(8))

    def test_ranges(self):
        with tempfile.TemporaryDirectory() as folder:
            _, worker = self.start(folder)
            self.order(folder, 1, "perfect")
            with torch.profiler.profile() as profile:
                worker.execute_model(steps(50))
                with open(os.path.join(folder, "arm.json")) as f:
                    order = json.load(f)
                self.order(folder, 1, "perfect", text=json.dumps({**order, "expires_ns": 1}))
                worker.execute_model(steps(3))
            names = [e.name for e in profile.events()]
            self.assertIn("moebalance step=2 tokens=3 sequence=1 arm=perfect expired", names)
            self.assertTrue(
                {"moebalance step=1 tokens=50 sequence=1 arm=perfect", "moebalance layer=0", "moebalance layer=1"}
                <= set(names),
                names,
            )


class End(unittest.TestCase):
    def test_the_process_ends_while_counts_are_written(self):
        """A thread within PyTorch while the interpreter ends: "terminate called without an active exception"."""
        text = """
import threading, time, torch
from moebalance_hook import hook
hook.IDLE, begun = 0.01, []
def write():
    begun.append(time.monotonic())
    while threading.current_thread() is hook.HOOK.writer and time.monotonic() < begun[0] + 2:
        torch.sort(torch.rand(1_000_000))
hook.HOOK.write = write
hook.HOOK.step(1)
hook.HOOK.finish()
while not begun:
    time.sleep(0.01)
"""
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=sys.path[0])
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Entries(unittest.TestCase):
    """What the hook finds in its cache and in the engine's routers: each error is one line that names the file."""

    def cache(self, folder, rank=0):
        """A copy of tep4, and the path of a rank's entry."""
        shutil.copytree(os.path.join(CACHES, "tep4"), folder, dirs_exist_ok=True)
        return f"{folder}/diagonal-rank{rank}-any.safetensors"

    def change(self, path, at=None, value=b"", meta=None, sum_again=True):
        """Writes bytes into the ids, and metadata, with a checksum that is right again."""
        with open(path, "rb") as f:
            data = bytearray(f.read())
        length = int.from_bytes(data[:8], "little")
        header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
        if at is not None:
            body[at : at + len(value)] = value
        header["__metadata__"].update(meta or {})
        if sum_again:
            header["__metadata__"]["checksum"] = f"crc32:{zlib.crc32(bytes(body)):08x}"
        text = json.dumps(header).encode()
        with open(path, "wb") as f:
            f.write(len(text).to_bytes(8, "little") + text + body)

    def start(self, folder, runner=None):
        kind, worker = fake_vllm()
        hook = load(None, perfect=True, CACHE=folder)
        hook.vllm()
        one = worker(kind(**{"layer": 3, "experts": 32, "top_k": 4, "dp": 1, "rank": 0, "ranks": 4, **(runner or {})}))
        return hook, one

    def refused(self, text, spoil, name=None):
        load(None)
        with tempfile.TemporaryDirectory() as folder:
            path = self.cache(folder)
            spoil(path)
            with self.assertRaises(RuntimeError) as caught:
                self.start(folder)[1].profile(8)
            said = str(caught.exception)
            self.assertRegex(said, text)
            self.assertNotIn("\n", said)
            self.assertIn(os.path.join(folder, name) if name else path, said)

    def test_whole(self):
        load(None)
        with tempfile.TemporaryDirectory() as folder:
            self.change(self.cache(folder))
            hook, worker = self.start(folder)
            self.assertEqual(max_over_mean(worker.profile(64)[0], 32, 4), 1)
            self.assertEqual([layer.proved for layer in hook.HOOK.layers.values()], [True])

    def test_uneven_ranks(self):
        """Balanced rows give each of 5 ranks as many of the 160 slots of 40 tokens, though two have 7 of the 32 experts and
        three 6: with one rank's tokens, or with each one's."""
        for cache, dp in (("tep5", 1), ("dep5", 5)):
            with open(os.path.join(CACHES, cache, "held.json")) as f:
                held = json.load(f)
            self.assertEqual([len(experts) for experts in held], [7, 7, 6, 6, 6])
            ids = []
            for rank in range(5 if dp > 1 else 1):
                runner = {"rank": rank, "ranks": 5, "dp": dp}
                hook, worker = self.start(os.path.join(CACHES, cache), runner)
                ids.append(worker.profile(40 // dp)[0])
            load = torch.bincount(torch.cat(ids).flatten().long(), minlength=32)
            self.assertEqual([int(load[experts].sum()) for experts in held], [32] * 5)

    def test_damaged(self):
        def zeros(path):
            with open(path, "r+b") as f:
                f.seek(4096)
                f.write(bytes(os.path.getsize(path) - 4096))

        self.refused("want checksum crc32:[0-9a-f]{8}, have crc32", zeros)
        for at in (0, 4 * 17):
            self.refused("want checksum", lambda path, at=at: self.change(path, at, b"\x07", sum_again=False))
        self.refused("a damaged file", lambda path: os.truncate(path, os.path.getsize(path) - 1))

    def test_ids(self):
        whole = lambda *ids: b"".join(e.to_bytes(4, "little", signed=True) for e in ids)
        for ids, text in (
            ((4096, 1, 2, 3), r"want 4 distinct experts from 0 to 31, have \[4096, 1, 2, 3\] in row 2"),
            ((-1, 1, 2, 3), "-1, 1, 2, 3"),
            ((5, 6, 7, 5), "5, 6, 7, 5"),
        ):
            self.refused(text, lambda path, ids=ids: self.change(path, 2 * 16, whole(*ids)))

    def test_foreign_and_broken_files(self):
        def write(path, data):
            with open(path, "wb") as f:
                f.write(data)

        for data in (b"no", b"", (1 << 60).to_bytes(8, "little") + b"{}" * 40, (2).to_bytes(8, "little") + b"[]"):
            self.refused("want a safetensors file", lambda path, data=data: write(path, data))

        def pipe(path):
            os.remove(path)
            os.mkfifo(path)

        self.refused("no regular file", pipe)
        self.refused(
            "is missing, or no regular file: make it with 'moebalance logits generate --ep 4 --mode tep", os.remove
        )
        self.refused("want metadata layers, period", lambda path: self.change(path, meta={"period": "many"}))
        self.refused("another cache's", lambda path: self.change(path, meta={"manifest": "crc32:00000000"}))

        def manifest(text):
            return lambda path: write(os.path.join(os.path.dirname(path), "manifest.json"), text)

        for text in (b"{", b"[]", b"{}", b'{"kind": "moebalance logits", "schema_version": 2}'):
            self.refused("want the manifest of a cache of version 4", manifest(text), "manifest.json")
        self.refused(
            "manifest.json is missing",
            lambda path: os.remove(path.replace(os.path.basename(path), "manifest.json")),
            "manifest.json",
        )

    def test_routing_of_another_kind(self):
        """By what the router says of itself, and by what it does."""

        class Grouped(Router):
            def select_experts(self, hidden_states, router_logits, topk_indices_dtype=None, *, input_ids=None):
                scores = router_logits.float().sigmoid().view(len(router_logits), 8, -1)
                best = scores.topk(2).values.sum(-1).topk(2).indices
                open_groups = torch.zeros(scores.shape[:2], dtype=torch.bool).scatter_(1, best, True)
                return scores.masked_fill(~open_groups.unsqueeze(-1), -1).flatten(1).topk(4)

        for says in (True, False):
            _, worker = self.start(os.path.join(CACHES, "tep4"))
            router = worker.runners[0].router = Grouped(4)
            if says:
                router.num_expert_group, router.topk_group, router.scoring_func = 8, 2, "sigmoid"
            want = (
                "in 2 of 8 groups, sigmoid scores.*Renormalize"
                if says
                else r"layer model.layers.3.mlp.experts: its router is not that of .*tep4.*other experts"
            )
            with self.assertRaisesRegex(RuntimeError, want):
                worker.profile(8)
        for layer, attributes in ((1, {"scoring_func": "sigmoid"}), (2, {"e_score_correction_bias": torch.zeros(32)})):
            _, worker = self.start(os.path.join(CACHES, "tep4"))
            vars(worker.runners[0].router).update(attributes)
            with self.assertRaisesRegex(
                RuntimeError, "want 32 experts, top-4, (sigmoid scores|any scores with a bias)"
            ):
                worker.profile(8)

    def test_layers_that_no_logits_reach(self):
        _, worker = self.start(os.path.join(CACHES, "tep4"))
        worker.runners[0].router._hash_indices_table = torch.zeros(100, 4)
        with self.assertRaisesRegex(RuntimeError, "vLLM 0.26.0: layer model.layers.3.mlp.experts is a hash layer"):
            worker.profile(8)
        _, worker = self.start(os.path.join(CACHES, "tep4"))
        with self.assertRaisesRegex(RuntimeError, "layer model.layers.3.mlp.experts has no logits"):
            worker.runners[0]._apply_quant_method(hidden_states=None, router_logits=None, shared_experts_input=None)


def fake_sglang(
    version="0.5.16",
    a2a=False,
    prefill="breakable",
    rank=0,
    ranks=1,
    tp_rank=0,
    pp_size=1,
    moe_dp_size=1,
    attn_cp_size=1,
    **args,
):
    class TopK:
        bypassed = False

        def __init__(self, layer_id=None, shared=0, bias=None):
            self.layer_id, self.topk_config = (
                layer_id,
                types.SimpleNamespace(
                    top_k=4,
                    num_fused_shared_experts=shared,
                    correction_bias=bias,
                    use_grouped_topk=False,
                    num_expert_group=None,
                    topk_group=None,
                ),
            )

        def forward(self, *args, **named):
            return self.forward_cuda(*args, **named)

        def forward_cuda(self, hidden_states, router_logits, *, num_token_non_padded=None, dynamic_expert_bias=None):
            if self.bypassed:  # as SGLang's BypassedTopKOutput
                return types.SimpleNamespace(raw_router_logits=router_logits)
            ids = router_logits.float().topk(4).indices.int()
            ids[num_token_non_padded:] = -1
            return types.SimpleNamespace(topk_ids=ids)

        forward_native = forward_cuda

    class ModelRunner:
        def __init__(self, *layers):
            self.layers, self.padded, self.more, self.bias = layers, 0, [], None
            self.model = types.SimpleNamespace(
                named_modules=lambda: [(f"model.layers.{i}.mlp.topk", m) for i, m in enumerate([*layers, *self.more])]
            )

        @torch.inference_mode()
        def forward(self, forward_batch, pp_proxy_tensors=None):
            tokens = len(forward_batch.input_ids)
            learned = torch.randn(tokens + self.padded, 32, generator=torch.Generator().manual_seed(3)).bfloat16()
            given = {"num_token_non_padded": tokens, "dynamic_expert_bias": self.bias}
            return [layer.forward(learned, learned, **given).topk_ids for layer in self.layers]

        def run(self, tokens):
            return self.forward(types.SimpleNamespace(input_ids=[0] * tokens))

    class Engine:
        def shutdown(self):
            return "shut"

    parallel = types.SimpleNamespace(
        moe_ep_rank=rank,
        moe_ep_size=ranks,
        moe_tp_rank=tp_rank,
        moe_dp_size=moe_dp_size,
        pp_size=pp_size,
        attn_cp_size=attn_cp_size,
    )
    server = types.SimpleNamespace(
        **{
            "speculative_algorithm": None,
            "enable_eplb": False,
            "ep_num_redundant_experts": 0,
            "init_expert_location": "trivial",
            "enable_torch_compile": False,
            "cuda_graph_config": types.SimpleNamespace(prefill=types.SimpleNamespace(backend=prefill)),
            "dp_size": 1,
            "enable_dp_attention": False,
            "chunked_prefill_size": 512,
            "max_prefill_tokens": 1024,
            **args,
        }
    )

    for name in ("", ".srt", ".srt.entrypoints", ".srt.layers", ".srt.layers.moe", ".srt.model_executor"):
        module("sglang" + name, __version__=version)
    module("sglang.srt.entrypoints.engine", Engine=Engine)
    module("sglang.srt.layers.moe.topk", TopK=TopK)
    module(
        "sglang.srt.layers.moe.utils",
        get_moe_a2a_backend=lambda: types.SimpleNamespace(is_none=lambda: not a2a),
        should_use_flashinfer_cutlass_moe_fp4_allgather=lambda: False,
    )
    module("sglang.srt.model_executor.model_runner", ModelRunner=ModelRunner)
    module("sglang.srt.runtime_context", get_parallel=lambda: parallel, get_server_args=lambda: server)
    return TopK, ModelRunner, Engine


class SGLang(unittest.TestCase):
    def start(self, cache, layers=2, perfect=True, **site):
        variables = {name: site.pop(name) for name in list(site) if name.isupper()}
        topk, runner, engine = fake_sglang(**site)
        hook = load(cache, perfect=perfect, **variables)
        hook.sglang()
        return hook, runner(*[topk(i) for i in range(layers)]), engine()

    def test_an_unknown_release(self):
        """0.5.23 calls a device's method directly, and has other names for shared experts; what it does is tested as it runs."""
        _, runner, _ = self.start("tep4", rank=0, ranks=4, version="0.5.23")
        for layer in runner.layers:
            del layer.topk_config.num_fused_shared_experts
            layer.topk_config.num_shared_topk_slots = 0
            layer.forward = layer.forward_cuda
        self.assertEqual(max_over_mean(runner.run(30)[1], 32, 4), 1)
        _, runner, _ = self.start("tep4", rank=0, ranks=4, version="0.5.23")
        for layer in runner.layers:
            del layer.topk_config.num_fused_shared_experts
            layer.topk_config.num_shared_topk_slots = 1
        with self.assertRaisesRegex(RuntimeError, "--disable-shared-experts-fusion"):
            runner.run(30)

    def test_inert(self):
        topk, _, _ = fake_sglang("0.4.0")
        before = topk.forward
        load(None, perfect=True).sglang()
        self.assertIs(topk.forward, before)

    def test_every_rank_routes_the_tokens_of_all(self):
        for attention in ({}, {"dp_size": 4, "enable_dp_attention": True}):  # gathered before the gate
            ids = [self.start("tep4", rank=r, ranks=4, **attention)[1].run(30) for r in range(4)]
            for layer in range(2):
                self.assertTrue(all(ids[r][layer].equal(ids[0][layer]) for r in range(4)))
                self.assertEqual(max_over_mean(ids[0][layer], 32, 4), 1)
            self.assertFalse(ids[0][0].equal(ids[0][1]))

    def test_ranks_with_tokens_of_their_own(self):
        ids = [
            self.start("dep4", rank=r, ranks=4, a2a=True, dp_size=4, enable_dp_attention=True)[1].run(5)
            for r in range(4)
        ]
        for layer in range(2):
            rows = torch.cat([ids[r][layer] for r in range(4)])
            self.assertEqual(max_over_mean(rows, 32, 4), 1)
            self.assertLessEqual(int(torch.bincount(rows.flatten().long()).max()), 3)  # 80 slots on 32 experts

    def test_counts_and_proof(self):
        with tempfile.TemporaryDirectory() as folder:
            hook, runner, engine = self.start("tep4", rank=0, ranks=4, COUNTS=folder)
            runner.padded = 3
            runner.run(8)
            runner.run(1)
            hook.HOOK.write()
            from safetensors.torch import load_file

            counts = load_file(os.path.join(folder, "rank0.safetensors"))
            self.assertEqual(
                {name: int(row.sum()) for name, row in counts.items()}, {"0_0": 32, "0_1": 32, "1_0": 4, "1_1": 4}
            )
            with open(os.path.join(folder, "moebalance-hook.rank0.json")) as f:
                proof = json.load(f)
            self.assertEqual(
                [proof[key] for key in ("engine", "engine_version", "mode", "ranks", "layers", "arm", "tokens")],
                ["sglang", "0.5.16", "tep", 4, 2, "perfect", 9],
            )
            self.assertEqual(engine.shutdown(), "shut")
        with tempfile.TemporaryDirectory() as folder:  # shares its experts with tensor-parallel rank 0, which writes
            hook, runner, _ = self.start("tep4", rank=0, ranks=4, tp_rank=1, COUNTS=folder)
            runner.run(8)
            hook.HOOK.write()
            self.assertEqual(glob.glob(folder + "/*"), [])

    def test_graphs_of_decode_before_the_first_prefill(self):
        hook, runner, _ = self.start("tep4", rank=0, ranks=4)
        runner.run(4)
        for layer in hook.HOOK.layers.values():
            layer.captured = True
        runner.run(512)
        with self.assertRaisesRegex(RuntimeError, "MOEBALANCE_TOKENS"):
            runner.run(4000)

    def test_a_rank_without_tokens(self):
        """Its first steps prove nothing, a later one does."""
        hook, runner, _ = self.start("dep4", rank=0, ranks=4, a2a=True, dp_size=4, enable_dp_attention=True)
        for tokens in (0, 0, 5):
            self.assertEqual([len(ids) for ids in runner.run(tokens)], [tokens] * 2)
        self.assertEqual([layer.proved for layer in hook.HOOK.layers.values()], [True, True])

    def test_kernels_that_route(self):
        """A kernel that is handed the logits chooses unseen: no counts, no proved layer."""
        with tempfile.TemporaryDirectory() as folder:
            hook, runner, _ = self.start("tep4", rank=0, ranks=4, COUNTS=folder)
            for layer in runner.layers:
                layer.bypassed = True
                out = layer.forward(torch.zeros(9, 8), torch.zeros(9, 32))
                self.assertEqual(out.raw_router_logits.unique().tolist(), [-32.0, 32.0])
            self.assertEqual([layer.proved for layer in hook.HOOK.layers.values()], [False, False])
            self.assertIsNone(hook.HOOK.recorder.counts)

    def test_layers_without_number(self):
        _, runner, _ = self.start("tep4", rank=0, ranks=4)
        for layer in runner.layers:
            layer.layer_id = None
        first, second = runner.run(8)
        self.assertFalse(first.equal(second))

    def test_refusals(self):
        for site, text in (
            ({"speculative_algorithm": "EAGLE"}, "no speculative"),
            ({"enable_eplb": True}, "no EPLB"),
            ({"init_expert_location": "x.json"}, "no EPLB"),
            ({"ep_num_redundant_experts": 4}, "no EPLB"),
            ({"dp_size": 2}, "one replica"),
            ({"moe_dp_size": 2}, "one replica"),
            ({"pp_size": 2}, "no pipeline parallelism"),
            ({"attn_cp_size": 2}, "no attention context parallelism"),
            ({"prefill": "tc_piecewise"}, "prefill breakable"),
        ):
            with self.assertRaisesRegex(RuntimeError, "SGLang 0.5.16: want .*" + text):
                self.start("tep4", rank=0, ranks=4, **site)[1].run(8)
        _, runner, _ = self.start("tep4", rank=0, ranks=4)
        runner.layers[0].topk_config.num_fused_shared_experts = 1
        with self.assertRaisesRegex(RuntimeError, "--disable-shared-experts-fusion"):
            runner.run(8)
        _, runner, _ = self.start("tep4", rank=0, ranks=4)
        runner.layers[1].is_draft = True
        with self.assertRaisesRegex(RuntimeError, "no speculative decoding"):
            runner.run(8)
        for learned, given in ((None, {}), (torch.zeros(3, 32), {"router_logits_partials": 1})):
            _, runner, _ = self.start("tep4", rank=0, ranks=4)
            with self.assertRaisesRegex(RuntimeError, "SGLang 0.5.16: want a layer whose router has logits"):
                runner.layers[0].forward_cuda(torch.zeros(3, 8), learned, **given)
        for perfect in (True, False):  # Ling's bias of each token, which batches of text alone have not
            _, runner, _ = self.start("tep4", 1, perfect, rank=0, ranks=4)
            runner.run(3)
            runner.bias = torch.zeros(3, 32)
            if perfect:
                with self.assertRaisesRegex(RuntimeError, "SGLang 0.5.16: want no correction bias of each token"):
                    runner.run(3)
            else:
                runner.run(3)
        hashed, unseen = type("HashTopK", (), {})(), type(runner.layers[0])(2)
        for layers, more, text in (
            (2, hashed, "model.layers.2.mlp.topk is a hash layer"),
            (2, unseen, "model.layers.2.mlp.topk does not choose the experts"),
            (0, unseen, "no layer of SimpleNamespace chooses its experts by TopK"),
        ):
            for perfect in (True, False):
                _, runner, _ = self.start("tep4", layers, perfect, rank=0, ranks=4)
                runner.more.append(more)
                runner.run(0)
                if perfect:
                    with self.assertRaisesRegex(RuntimeError, "SGLang 0.5.16: " + text):
                        runner.run(8)
                else:
                    runner.run(8)
        topk, _, _ = fake_sglang()
        topk.forward_cuda = lambda self, x, logits: None
        with self.assertRaisesRegex(
            SystemExit,
            "want TopK.forward_cuda with hidden_states, router_logits, have self, x, logits; SGLang 0.5.16, 0.5.17, 0.5.23 .* has it",
        ):
            load("tep4", perfect=True).sglang()


@unittest.skipUnless(importlib.util.find_spec("sglang"), "needs SGLang")
class RealSGLang(unittest.TestCase):
    """SGLang's own TopK, without its kernels: its forward_native."""

    def test_rows(self):
        for name in [n for n in sys.modules if n.partition(".")[0] == "sglang"]:
            del sys.modules[name]
        hook = load("tep4", perfect=True)
        hook.sglang()
        from sglang.srt import runtime_context as context
        from sglang.srt.layers.moe.topk import TopK

        graphs = types.SimpleNamespace(prefill=types.SimpleNamespace(backend="breakable"))
        one = {
            "tp_size": 4,
            "tp_rank": 1,
            "moe_ep_size": 4,
            "moe_ep_rank": 1,
            "moe_tp_rank": 0,
            "moe_dp_size": 1,
            "pp_size": 1,
            "attn_tp_size": 4,
            "attn_tp_rank": 1,
            "attn_cp_size": 1,
        }
        with (
            context._CONTEXT.override_server_args(chunked_prefill_size=512, cuda_graph_config=graphs),
            context.get_parallel().override(**one),
        ):
            for layer in (0, 5):
                got = TopK(4, layer_id=layer)(torch.zeros(20, 8), torch.randn(20, 32)).topk_ids.long()
                entry = hook.HOOK.tables.entry
                want = entry.ids[(torch.arange(20) + layer * entry.period) % len(entry.ids)]
                self.assertTrue(got.sort().values.equal(want.sort().values))
        self.assertEqual((hook.HOOK.site.engine, hook.HOOK.site.mode, hook.HOOK.site.rank), ("sglang", "tep", 1))


try:
    import transformers
except ImportError:
    transformers = None


@unittest.skipUnless(transformers, "needs transformers")
class Transformers(unittest.TestCase):
    def model(self):
        config = transformers.Qwen3MoeConfig(
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=8,
            intermediate_size=32,
            moe_intermediate_size=16,
            num_experts=16,
            num_experts_per_tok=2,
            vocab_size=100,
            decoder_sparse_step=1,
        )
        torch.manual_seed(0)
        return transformers.AutoModelForCausalLM.from_config(config).eval()

    def test_counts(self):
        for perfect in (False, True):
            for name in [n for n in sys.modules if n.partition(".")[0] == "vllm"]:
                del sys.modules[name]
            with tempfile.TemporaryDirectory() as folder:
                hook = load("single", perfect=perfect, COUNTS=folder)
                model = self.model()
                for block in (
                    model.model.layers
                ):  # as its tensor_parallel.py renumbers the experts of a rank that has half of them
                    inner = block.mlp.gate.forward
                    block.mlp.gate.forward = lambda x, inner=inner: (lambda out: (*out[:2], out[2] % 8))(inner(x))
                model = hook.transformers(model)
                with torch.no_grad():
                    for tokens in (3, 24):
                        model(torch.arange(tokens).view(1, tokens))
                hook.HOOK.write()
                from safetensors.torch import load_file

                counts = load_file(os.path.join(folder, "rank0.safetensors"))
                self.assertEqual(sorted(counts), ["0_0", "0_1", "1_0", "1_1"])
                self.assertEqual(
                    [int(counts[f"{i}_{layer}"].sum()) for i in (0, 1) for layer in (0, 1)], [6, 6, 48, 48]
                )
                self.assertEqual(all(int(counts["1_" + layer].max()) == 3 for layer in "01"), perfect)
                self.assertEqual(json.load(open(glob.glob(folder + "/moebalance-hook.*")[0]))["engine"], "transformers")

    def test_layers_whose_router_is_of_another_kind(self):
        """DeepSeek-V4's hash layers are refused by name, but for learned routing, which nothing replaces."""

        class HashRouter(torch.nn.Module):
            pass

        for perfect in (False, True):
            model = self.model()
            model.model.layers[1].mlp.gate = HashRouter()
            hook = load("single", perfect=perfect)
            if perfect:
                with self.assertRaisesRegex(
                    RuntimeError, r"layer model.layers.1.mlp \(HashRouter\) has no ...TopKRouter: a hash layer"
                ):
                    hook.transformers(model)
            else:
                hook.transformers(model)

    def test_routers_that_are_not_called(self):
        for perfect in (True, False):
            model = self.model()
            hook = load("single", perfect=perfect).transformers(model)
            block = model.model.layers[1].mlp
            block.forward = lambda x: x  # as a kernel of its own
            if perfect:
                with self.assertRaisesRegex(RuntimeError, "router model.layers.1.mlp.gate was not called in a step"):
                    hook(torch.arange(3).view(1, 3))
            else:
                hook(torch.arange(3).view(1, 3))

    def test_ranks_with_tokens_of_their_own(self):
        model = self.model()
        model.config.distributed_config = types.SimpleNamespace(ep_size=4, tp_size=1)
        with self.assertRaisesRegex(RuntimeError, "want rank, ranks and mode='dep'"):
            load("single", perfect=True).transformers(model)
        load("single", perfect=True).transformers(model, rank=0, ranks=1)

    def test_generates_and_compiles(self):
        model = load("single", perfect=True).transformers(self.model())
        with torch.no_grad():
            want = model(torch.arange(9).view(1, 9)).logits
            model.generate(torch.arange(5).view(1, 5), max_new_tokens=3, do_sample=False)
            got = torch.compile(model, backend="eager")(torch.arange(9).view(1, 9)).logits
        self.assertTrue(torch.allclose(got, want, atol=1e-5))


if __name__ == "__main__":
    unittest.main()
