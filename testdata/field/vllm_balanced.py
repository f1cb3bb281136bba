"""A balanced strategy for vLLM's routing simulator: VLLM_MOE_ROUTING_SIMULATION_STRATEGY=balanced.

To be added to vllm/model_executor/layers/fused_moe/router/routing_simulator_router.py (as of 0.33), below
DistributionBasedRouting and to RoutingSimulator._routing_strategies; elsewhere
RoutingSimulator.register_strategy("balanced", BalancedRouting()) does it.
uniform_random is balanced only in expectation: 256 experts, top-8, 8 ranks and 8 tokens each give a busiest rank of
1.19 and a busiest expert of 3.6 times the mean, so that a run with it says little about what balance would bring.

"python3 vllm_balanced.py" runs the class against a stand-in of its imports (needs torch) and counts all ranks' slots:
ranks and experts within one, no expert twice in a token, no rank sent to by two others in the same slot, for every
number of tokens up to 40 of 5 models' shapes on 1 to 64 ranks, of which 1, 2, 4 … share a data-parallel rank's tokens.
"python3 vllm_balanced.py MODEL" runs it in vLLM on one rank, and counts each call of its router
(results/vllm-balanced-cpu.jsonl).
"""

import json
import math
import os
import sys

import torch

try:
    from vllm.distributed import get_dp_group, get_ep_group, model_parallel_is_initialized
    from vllm.model_executor.layers.fused_moe.router.routing_simulator_router import RoutingStrategy
except ImportError:
    RoutingStrategy, get_dp_group, get_ep_group, model_parallel_is_initialized = object, None, None, None


class BalancedRouting(RoutingStrategy):
    """Deals slots out in turn: every expert-parallel rank and every expert gets
    equally many of each batch, as far as whole slots allow, where all data-parallel
    ranks have equally many tokens.

    With R ranks of L contiguous experts, of which t = R / D share the tokens of each
    of D data-parallel ranks and agree about them, slot n = token * top_k + j of
    data-parallel rank d goes to rank (d * t + n) % R, so that in any slot all senders
    have different receivers, and there to local expert (n // t) % L, since t slots
    visit every rank once. No randomness, no synchronization, only arange: CUDA graphs
    capture it.

    As in uniform_random, experts are logical ones, and the model's expert groups do
    not matter. Monolithic kernels have no logits from it. Ranks that split a
    data-parallel rank's tokens (sequence parallelism) all begin at the same expert.
    Not for kernels for which the tokens of all ranks are gathered before they are
    routed.
    """

    def route_tokens(
        self,
        hidden_states: torch.Tensor,
        router_logits: torch.Tensor,
        top_k: int,
        indices_type: torch.dtype | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        num_tokens, num_experts = router_logits.shape
        ranks, senders, sender = 1, 1, 0
        if model_parallel_is_initialized():
            ranks, dp = get_ep_group().world_size, get_dp_group()
            senders, sender = dp.world_size, dp.rank_in_group
        sharing, per_rank = ranks // senders, num_experts // ranks
        if num_experts % ranks or num_experts // math.gcd(senders, per_rank) < top_k:
            raise ValueError(
                f"balanced routing cannot give {top_k} different experts to a token: "
                f"{num_experts} experts on {ranks} ranks, {senders} data parallel"
            )
        slots = torch.arange(num_tokens * top_k, device=hidden_states.device)
        receivers = (sender * sharing + slots) % ranks
        topk_ids = receivers * per_rank + slots // sharing % per_rank
        topk_weights = torch.full(
            (num_tokens, top_k),
            1.0 / top_k,
            dtype=torch.float32,
            device=hidden_states.device,
        )
        topk_ids = topk_ids.view(num_tokens, top_k).to(indices_type or torch.long)
        return topk_weights, topk_ids


def check() -> None:
    from itertools import product
    from types import SimpleNamespace as Group

    shapes, numbers = ((256, 8), (128, 4), (128, 8), (512, 10), (32, 4)), (1, 2, 4, 8, 16, 32, 64)
    for (experts, top_k), ranks, senders, tokens in product(shapes, numbers, numbers, range(1, 41)):
        if experts % ranks or ranks % senders:
            continue
        each = []
        for sender in range(senders):
            groups = Group(world_size=ranks), Group(world_size=senders, rank_in_group=sender)
            globals().update(get_ep_group=lambda: groups[0], get_dp_group=lambda: groups[1])
            globals().update(model_parallel_is_initialized=lambda: True)
            logits = torch.empty(tokens, experts)
            each.append(BalancedRouting().route_tokens(logits, logits, top_k)[1])
        ids = torch.stack(each)  # [senders, tokens, top_k]
        load = torch.bincount(ids.flatten(), minlength=experts)
        on_rank = load.view(ranks, -1).sum(1)
        assert on_rank.max() - on_rank.min() <= 1 and load.max() - load.min() <= 1
        assert (ids.sort(-1).values.diff(dim=-1) > 0).all()
        receivers = (ids // (experts // ranks)).sort(0).values
        assert senders == 1 or (receivers.diff(dim=0) > 0).all()
    print("balanced on all ranks and experts")


def serve(model: str) -> None:
    os.environ.update(VLLM_ENABLE_V1_MULTIPROCESSING="0", VLLM_MOE_ROUTING_SIMULATION_STRATEGY="balanced")
    from vllm import LLM, SamplingParams, __version__
    from vllm.inputs import TokensPrompt
    from vllm.model_executor.layers.fused_moe.router import routing_simulator_router as place

    place.RoutingSimulator.register_strategy("balanced", BalancedRouting())
    said, inner = {"calls": 0, "rows": 0, "calls_off_floor": 0, "rows_with_an_expert_twice": 0}, place.RoutingSimulatorRouter._compute_routing

    def seen(self, *args, **given):
        weights, ids = inner(self, *args, **given)
        load, ordered = torch.bincount(ids.flatten().long(), minlength=self.global_num_experts), ids.sort(-1).values
        said["calls"] += 1
        said["rows"] += len(ids)
        said["calls_off_floor"] += int(load.max() > -(-ids.numel() // len(load)))
        said["rows_with_an_expert_twice"] += int((ordered.diff(dim=-1) == 0).any(-1).sum())
        return weights, ids.int()  # the kernels of vLLM's CPU build take no other, so that its own strategies fail there

    place.RoutingSimulatorRouter._compute_routing = seen
    llm = LLM(model=model, load_format="dummy", skip_tokenizer_init=True, max_model_len=256, max_num_seqs=16, max_num_batched_tokens=512, enforce_eager=True)
    for n in (16, 5):
        prompts = [TokensPrompt(prompt_token_ids=[2 + 7 * i + j for j in range(20 + i)]) for i in range(n)]
        llm.generate(prompts, SamplingParams(ignore_eos=True, detokenize=False, max_tokens=8), use_tqdm=False)
    llm.llm_engine.engine_core.shutdown()
    print(json.dumps({"vllm": __version__, "torch": torch.__version__, "model": os.path.basename(model), **said}), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1]) if len(sys.argv) > 1 else check()
