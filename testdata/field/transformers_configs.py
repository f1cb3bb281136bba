"""Every configuration with experts that transformers has, at its defaults, with the truth beside it: which layers of the
model that transformers builds of it have routers, how wide its experts are, and what its router chooses of some logits.
Go's TestTransformersConfigs holds router.ParseConfig and the router it names to that, row by row.

    python3 transformers_configs.py > ../transformers-configs.jsonl     # a line of JSON for each configuration; needs no GPU

Logits and biases come from whole numbers, the same in Go. A router gets its logits as hidden states through a weight that is
the identity. Where defaults are null, published values of the family stand in (FILLED).
"""
import copy
import importlib
import inspect
import json
import pathlib
import re
import sys

import torch
import transformers
from transformers import PreTrainedModel
from transformers.configuration_utils import PreTrainedConfig

TOKENS = 3
ROUTER = re.compile(r"(Router|TopKGating|MoEV1Gate)$")
BIASES = ("e_score_correction_bias", "balancing_biases", "expert_bias")
FILLED = {
    "deepseek_v2": {"num_experts_per_tok": 6},
    "deepseek_ocr2_text": {"num_experts_per_tok": 6, "mlp_layer_types": ["dense"] + ["sparse"] * 31},
    "dots1": {"n_routed_experts": 128, "num_experts_per_tok": 6, "n_shared_experts": 2, "first_k_dense_replace": 1},
    "gemma4_text": {"hidden_size_per_layer_input": 0, "enable_moe_block": True, "num_experts": 128, "top_k_experts": 8, "moe_intermediate_size": 704},
    "diffusion_gemma_text": {"num_experts": 128, "top_k_experts": 8, "moe_intermediate_size": 704},
}
# What says nothing of experts and layers is left out of the table.
# What models need beside, and routing does not.
BESIDE = {"hunyuan_v1_moe": {"head_dim": 128}, "lfm2_moe": {"layer_types": ["full_attention"] * 32},
          "dbrx": {"attn_config.rope_theta": 10000.0},
          "qwen4_exp_text": {"indexer_n_heads": 4, "indexer_kv_heads": 1, "indexer_head_dim": 128, "indexer_budget": 2048, "indexer_compress_ratio": 4},
          "qwen3_omni_moe_talker_text": {"shared_expert_intermediate_size": 768}}
UNREAD = re.compile(r"_token_(id|index)|rope|2(id|label)$|dtype|vocab|^_|version|quant|^index_|attn|attention|_heads?$|head_dim|vision|audio|"
                    r"^mamba|ssm|initializer|dropout|eps$|theta|compress|window|chunk|cache|^output_|return|lora|conv|kda|siglip|_per_layer|^tie_")


def value(token, expert):
    """A number in [-4, 4), exact in float32."""
    v = (token * 65537 + expert + 1) * 2654435761 % 2**32
    v = (v ^ v >> 16) * 2246822519 % 2**32
    return ((v ^ v >> 13) >> 8) / 2**21 - 4


def configurations():
    """The configurations that say how many experts there are, and the modules of their models."""
    for folder in sorted(pathlib.Path(transformers.__file__).parent.joinpath("models").iterdir()):
        try:
            module = importlib.import_module(f"transformers.models.{folder.name}.configuration_{folder.name}")
            models = importlib.import_module(f"transformers.models.{folder.name}.modeling_{folder.name}")
        except ImportError:
            continue
        seen = set()
        for c in list(vars(module).values()):
            if not (inspect.isclass(c) and issubclass(c, PreTrainedConfig) and c.__module__ == module.__name__) or c in seen:
                continue
            seen.add(c)
            if re.search("VL_Moe|DbrxFFN|VitPose", c.__name__):  # old names, a part, no mixture of experts
                continue
            try:
                made = c(**FILLED.get(c.model_type, {}))
            except Exception as e:  # a part of another configuration, which has no defaults
                print(c.__name__, repr(e)[:200], file=sys.stderr)
                continue
            said = made.to_json_string(use_diff=False)
            outer = any(isinstance(v, PreTrainedConfig) and "expert" in v.to_json_string(use_diff=False) for v in vars(made).values())
            if re.search(r'"[^"]*num_experts"|"n_routed_experts"|"num_local_experts"', said) and (not outer or c.model_type == "dbrx"):
                yield made, models


def built(config, models):
    """The model of the configuration, on no device: the class in whose name most of the configuration's is."""
    kinds = [c for c in vars(models).values() if inspect.isclass(c) and issubclass(c, PreTrainedModel) and c.__module__ == models.__name__
             and c.config_class is type(config) and re.search(r"(Model|ForCausalLM|Encoder)$", c.__name__) and "PreTrained" not in c.__name__]
    for kind in kinds:
        try:
            with torch.device("meta"):
                full = copy.deepcopy(config)
                for name, given in BESIDE.get(config.model_type, {}).items():
                    part, _, name = name.rpartition(".")
                    setattr(getattr(full, part) if part else full, name, given)
                model = kind(full)
        except Exception as e:
            print(config.model_type, kind.__name__, repr(e)[:200], file=sys.stderr)
            continue
        if any(ROUTER.search(type(m).__name__) for m in model.modules()):
            return model
    return None


def structure(model):
    """Its layers: how many, which have no routers, which route by a hash; the widths of its experts; a router and its block."""
    found, stacks = {}, {}
    for name, module in model.named_modules():
        if at := re.match(r"(.*?(?:layers|blocks|block))\.(\d+)(\.|$)", name):
            stacks.setdefault(at[1], set()).add(int(at[2]))
            if ROUTER.search(type(module).__name__):
                found.setdefault(at[1], {})[int(at[2])] = (name, module)
    stack = next(iter(found))
    hashed = sorted(i for i, (_, m) in found[stack].items() if "Hash" in type(m).__name__)
    name, router = next(v for i, v in sorted(found[stack].items()) if i not in hashed)
    block = model.get_submodule(name.rpartition(".")[0])
    widths = sorted({d for n, p in block.named_parameters() if re.search(r"experts\.(\d+\.)?(down_proj|w2|output_linear|fc2|wo)", n) and "shared" not in n and p.dim() > 1
                     and not n.endswith("bias") for d in p.shape[-2:]})
    return {"layers": len(stacks[stack]), "dense": sorted(stacks[stack] - set(found[stack])), "hash": hashed, "widths": widths}, router, block


def route(config, router, block):
    """What the router makes of the logits: experts, weights, the factor in the weights, whether a bias is added."""
    kind, sizes = type(router), [(router, "num_experts"), (config, "num_local_experts"), (config, "num_experts"), (getattr(router, "layer", None), "out_features")]
    experts = next(getattr(owner, name) for owner, name in sizes if getattr(owner, name, None))
    small = copy.deepcopy(config)
    small.hidden_size = experts
    if kind.__name__ == "DbrxRouter":
        small = small.ffn_config
        small.hidden_size = experts
    top_k = getattr(router, "top_k", None) or getattr(config, "top_k_experts", None)
    if kind.__name__ == "JetMoeTopKGating":
        router = kind(experts, experts, top_k)
    else:
        router = kind(small, *([0] if "layer_idx" in inspect.signature(kind.__init__).parameters else []))
    for parameter in router.parameters():
        torch.nn.init.zeros_(parameter) if parameter.dim() == 1 else torch.nn.init.eye_(parameter)
    if hasattr(router, "per_expert_scale"):  # Gemma norms and scales its hidden states, and its weights by an expert's scale
        router.norm, router.scalar_root_size = torch.nn.Identity(), 1
        torch.nn.init.ones_(router.scale), torch.nn.init.ones_(router.per_expert_scale)
    logits = torch.tensor([[value(t, e) for e in range(experts)] for t in range(TOKENS)])
    bias = torch.tensor([value(1000, e) / 16 for e in range(experts)])
    named = [b for n, b in router.named_buffers() if n.rpartition(".")[2] in BIASES] + [p for n, p in router.named_parameters() if n.rpartition(".")[2] in BIASES]
    given = [p for p in list(inspect.signature(kind.forward).parameters)[2:] if p in BIASES]
    for buffer in named:
        buffer.data.copy_(bias.reshape(buffer.shape))
    hidden = logits / getattr(router, "output_multiplier", 1)  # Muse Spark's logits are those behind its factor
    if kind.__name__ == "AfmoeTokenChoiceRouter":
        hidden = hidden[None]
    with torch.no_grad():
        out = router.eval()(hidden, *[bias] * len(given))
    if kind.__name__ == "DbrxRouter":
        out = [out, *block.route_tokens_to_experts(out)]
    if kind.__name__ == "JetMoeTopKGating":
        order = torch.repeat_interleave(torch.arange(experts), torch.tensor(out[3]))
        ids = torch.stack([order[out[1] == t] for t in range(TOKENS)])
        weights = torch.stack([out[2][out[1] == t] for t in range(TOKENS)])
    elif kind.__name__ == "Llama4Router":
        weights, ids = out[0].topk(top_k)
    else:
        ids, weights = next(o for o in out if not o.is_floating_point()), next(o for o in out[1:] if o.is_floating_point())
    scales = [getattr(m, n) for m in (router, block) for n in vars(m) if re.fullmatch(r"(moe_)?(rout\w*_scal\w*|router_scal\w*)", n)]
    inside = [getattr(router, n) for n in vars(router) if re.fullmatch(r"(rout\w*_scal\w*)", n)]
    if kind.__name__ == "OpenAIPrivacyFilterTopKRouter":
        scales = inside = [1 / top_k]
    rows = [sorted((int(i), float(f"{float(w):.6g}")) for i, w in zip(a, b)) for a, b in zip(ids.reshape(TOKENS, -1), weights.reshape(TOKENS, -1))]
    uses = given or named
    if kind.__name__ == "Lfm2MoeTopKRouter":
        uses = config.use_expert_bias
    return {"experts": experts, "top_k": ids.reshape(TOKENS, -1).shape[1], "bias": bool(uses), "scale": float((scales or [1])[0]),
            "scaled": float((inside or [1])[0]), "ids": [[i for i, _ in row] for row in rows], "weights": [[w for _, w in row] for row in rows]}


def line(config, models):
    said = json.loads(config.to_json_string(use_diff=False))
    kept = {k: v for k, v in said.items() if v is not None and not UNREAD.search(k)}
    if config.model_type in FILLED:
        kept = {k: said[k] for k in kept | FILLED[config.model_type]}
    made = {"transformers": transformers.__version__, "model_type": config.model_type, "filled": FILLED.get(config.model_type, {}), "config": kept}
    model = built(config, models)
    if model is None:
        return {**made, "unbuilt": "no model with a router is built of it"}
    truth, router, block = structure(model)
    try:
        return {**made, "router": type(router).__name__, "truth": {**truth, **route(config, router, block)}}
    except Exception as e:
        return {**made, "router": type(router).__name__, "truth": truth, "unrouted": f"{type(e).__name__}: {e}"}


if __name__ == "__main__":
    for found in configurations():
        print(json.dumps(line(*found)), flush=True)
