"""Every router of transformers that the hook takes, without the models around them: 'moebalance logits generate'
makes a cache of its default configuration, and every row that the router chooses is compared with the cache's.

    PYTHONPATH=HOOK python3 transformers_routers.py MOEBALANCE FOLDER     # a line of JSON for each model type
"""
import importlib
import inspect
import json
import os
import pathlib
import re
import subprocess
import sys

import torch
import transformers
from transformers.configuration_utils import PreTrainedConfig

TOKENS = 611


def routers():
    """Configurations of models with experts, and the classes of their routers."""
    for folder in sorted(pathlib.Path(transformers.__file__).parent.joinpath("models").iterdir()):
        try:
            config = importlib.import_module(f"transformers.models.{folder.name}.configuration_{folder.name}")
            model = importlib.import_module(f"transformers.models.{folder.name}.modeling_{folder.name}")
        except Exception:  # not a model, or one that needs what is not here
            continue
        kinds = [c for name, c in vars(model).items() if re.search(r"(Top[kK]|Llama4)Router$", name) and inspect.isclass(c) and c.__module__ == model.__name__]
        for name, c in vars(config).items():
            if kinds and inspect.isclass(c) and issubclass(c, PreTrainedConfig) and c.__module__ == config.__name__:
                try:
                    made = c()
                except Exception:
                    continue
                for kind in kinds:
                    try:
                        yield made, kind, kind(made)
                    except Exception:
                        continue  # of another configuration


class Host(torch.nn.Module):
    """A model that is nothing but routers."""

    def __init__(self, router, layers):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.ModuleDict({"gate": router if i == 0 else type(router)(router.made)}) for i in range(layers))
        for layer in self.layers:
            for parameter in layer.parameters():
                torch.nn.init.normal_(parameter, std=0.02)

    def forward(self, hidden):
        chosen = []
        for layer in self.layers:
            router = layer["gate"]
            bias = [torch.zeros(router.num_experts)] if "bias" in " ".join(list(inspect.signature(type(router).forward).parameters)[2:]) else []
            out = router(hidden, *bias)
            ids = [x for x in out if not x.is_floating_point()]  # Llama 4's returns scores alone
            chosen.append(ids[0] if ids else out[0].topk(router.top_k).indices)
        return chosen


def check(program, folder, config, kind, router):
    line = {"transformers": transformers.__version__, "model_type": config.model_type, "router": kind.__name__}
    where = os.path.join(folder, f"{config.model_type}.{kind.__name__}")
    os.makedirs(where, exist_ok=True)
    pathlib.Path(where, "config.json").write_text(config.to_json_string(use_diff=False))
    made = subprocess.run([program, "logits", "generate", "--model", where + "/config.json", "--ep", "1", "--mode", "tep", "--cache", where + "/cache"],
                          capture_output=True, text=True)
    if made.returncode:
        return {**line, "not_supported": made.stderr.strip().rpartition(": ")[2] if "model config" not in made.stderr else made.stderr.strip().partition("type ")[2]}
    os.environ.update(MOEBALANCE_CACHE=where + "/cache", ENABLE_PERFECT_ROUTER="1")
    for name in [n for n in sys.modules if n.partition(".")[0] == "moebalance_hook"]:
        del sys.modules[name]
    import moebalance_hook
    router.made = config
    hidden = torch.randn(TOKENS, config.hidden_size)
    try:
        model = moebalance_hook.transformers(Host(router, 2))
        with torch.no_grad():
            chosen = model(hidden)
    except RuntimeError as e:
        return {**line, "refused": str(e)}
    tables, wrong = moebalance_hook.HOOK.tables, 0
    for layer, ids in enumerate(chosen):
        wrong += int((ids.reshape(TOKENS, -1).sort(-1).values != tables.entry.of_layer(layer, TOKENS).sort(-1).values).any(-1).sum())
    return {**line, "experts": tables.experts, "top_k": tables.cache.top_k, "groups": tables.cache.groups, "method": tables.cache.method,
            "rows_compared": len(chosen) * TOKENS, "rows_wrong": wrong,
            "layers_proved": sum(layer.proved for layer in moebalance_hook.HOOK.layers.values())}


if __name__ == "__main__":
    torch.manual_seed(1)
    for found in routers():
        print(json.dumps(check(sys.argv[1], sys.argv[2], *found)), flush=True)
