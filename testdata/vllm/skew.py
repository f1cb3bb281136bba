"""A vLLM plugin that replaces router logits by fixed ones, see capture.py: Gumbel noise on a popularity of experts
that favors one rank's in two layers of three (SKEW=normal), or balanced ones (SKEW=perfect). Inert without SKEW."""
import os
import re

TABLES = {}


def table(arm, layer, experts, top_k, rows, like):
    import torch
    if arm == "perfect":
        slot = torch.arange(rows * top_k)
        chosen = (slot % 4 * (experts // 4) + slot // 4 % (experts // 4)).view(rows, top_k)
        logits = torch.full((rows, experts), -10.0).scatter_(1, chosen, 10.0)
    else:
        seeded = torch.Generator().manual_seed(1000 + layer)
        popularity = 0.6 * torch.randn(experts, generator=seeded)
        if layer % 3 != 1:
            hot = layer % 4 * (experts // 4)
            popularity[hot:hot + experts // 4] += 0.7
        logits = popularity - torch.log(-torch.log(torch.rand(rows, experts, generator=seeded).clamp_(1e-9, 1 - 1e-7)))
    return logits.to(device=like.device, dtype=like.dtype).contiguous()


def install():
    arm = os.environ.get("SKEW")
    if not arm:
        return
    from vllm.model_executor.layers.fused_moe.runner.moe_runner import MoERunner
    inner = MoERunner._apply_quant_method

    def apply(self, *args, **named):
        logits, name = named["router_logits"], self.layer_name
        if name not in TABLES:
            layer = int(re.search(r"\.(\d+)\.", name)[1])
            TABLES[name] = table(arm, layer, logits.shape[1], 8, 16384, logits)
        named["router_logits"] = TABLES[name][:logits.shape[0]]
        return inner(self, *args, **named)

    MoERunner._apply_quant_method = apply
