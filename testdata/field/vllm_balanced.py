"""A balanced strategy for vLLM's routing simulator: VLLM_MOE_ROUTING_SIMULATION_STRATEGY=balanced.

To be added to vllm/model_executor/layers/fused_moe/router/routing_simulator_router.py, below DistributionBasedRouting and
to RoutingSimulator._routing_strategies; elsewhere RoutingSimulator.register_strategy("balanced", BalancedRouting()) does it.
uniform_random is balanced only in expectation: 256 experts, top-8, 8 ranks and 8 tokens each give a busiest rank of 1.19 and
a busiest expert of 3.6 times the mean, so that a run with it says little about what balance would bring.

"python3 vllm_balanced.py" runs the class against a stand-in of its
imports (needs torch) and counts all ranks' slots: ranks equal, experts within one, no expert twice in a token, no rank sent
to by two others in the same slot, for every number of tokens up to 40 of 5 models' shapes on 1 to 64 ranks.
"python3 vllm_balanced.py MODEL" runs it in vLLM on one rank, and counts each call of its router (results/vllm-balanced-cpu.jsonl).
"""

import json
import math
import os
import sys

import torch

try:
    from vllm.distributed import get_dp_group, get_ep_group
    from vllm.model_executor.layers.fused_moe.router.routing_simulator_router import RoutingStrategy
except ImportError:
    RoutingStrategy, get_dp_group, get_ep_group = object, None, None


class BalancedRouting(RoutingStrategy):
    """Deals slots out evenly: every expert-parallel rank and, as far as whole slots allow, every expert gets equally
    many in each batch.

    Slot n = token * top_k + j of data-parallel rank s goes to rank (s + n) % R, so that in any slot all senders have
    different receivers, and there to local expert n % L, of the R ranks with L contiguous experts each. Ranks that share
    a data-parallel rank's tokens agree. No randomness, no synchronization, only arange: it can be captured in CUDA graphs.
    """

    def route_tokens(
        self,
        hidden_states: torch.Tensor,
        router_logits: torch.Tensor,
        top_k: int,
        indices_type: torch.dtype | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        num_tokens, num_experts = router_logits.shape
        ep, dp = get_ep_group(), get_dp_group()
        per_rank, rest = divmod(num_experts, ep.world_size)
        if rest or math.lcm(ep.world_size, per_rank) < top_k:
            raise ValueError(
                f"balanced routing cannot give {top_k} different experts to a token: "
                f"{num_experts} experts on {ep.world_size} ranks"
            )
        first = dp.rank_in_group * max(1, ep.world_size // dp.world_size)
        slots = torch.arange(num_tokens * top_k, device=hidden_states.device)
        topk_ids = (first + slots) % ep.world_size * per_rank + slots % per_rank
        topk_weights = torch.full(
            (num_tokens, top_k), 1.0 / top_k, dtype=torch.float32, device=hidden_states.device
        )
        return topk_weights, topk_ids.view(num_tokens, top_k).to(indices_type or torch.long)


def check() -> None:
    from types import SimpleNamespace as Group

    for experts, top_k in ((256, 8), (128, 4), (128, 8), (512, 10), (32, 4)):
        for ranks in (1, 2, 4, 8, 16, 32, 64):
            for tokens in range(1, 41) if experts % ranks == 0 else ():
                each = []
                for rank in range(ranks):
                    globals().update(get_ep_group=lambda: Group(world_size=ranks))
                    globals().update(get_dp_group=lambda rank=rank: Group(world_size=ranks, rank_in_group=rank))
                    logits = torch.empty(tokens, experts)
                    each.append(BalancedRouting().route_tokens(logits, logits, top_k)[1])
                ids = torch.stack(each)  # [ranks, tokens, top_k]
                load = torch.bincount(ids.flatten(), minlength=experts)
                on_rank = load.view(ranks, -1).sum(1)
                distinct = (ids.sort(-1).values.diff(dim=-1) > 0).all()
                receivers = (ids // (experts // ranks)).sort(0).values
                assert on_rank.max() == on_rank.min() and load.max() - load.min() <= 1 and distinct
                assert ranks == 1 or (receivers.diff(dim=0) > 0).all()
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
