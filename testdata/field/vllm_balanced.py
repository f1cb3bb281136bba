"""A balanced strategy for vLLM's routing simulator: VLLM_MOE_ROUTING_SIMULATION_STRATEGY=balanced.

To be added to vllm/model_executor/layers/fused_moe/router/routing_simulator_router.py, below DistributionBasedRouting and
to RoutingSimulator._routing_strategies; elsewhere RoutingSimulator.register_strategy("balanced", BalancedRouting()) does it.
uniform_random is balanced only in expectation: 256 experts, top-8, 8 ranks and 8 tokens each give a busiest rank of 1.19 and
a busiest expert of 3.6 times the mean, so that a run with it says little about what balance would bring.

Not run in vLLM here. "python3 vllm_balanced.py" runs the class against a stand-in of its
imports (needs torch) and counts all ranks' slots: ranks equal, experts within one, no expert twice in a token, no rank sent
to by two others in the same slot, for every number of tokens up to 40 of 5 models' shapes on 1 to 64 ranks.
"""

import math

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


if __name__ == "__main__":
    check()
