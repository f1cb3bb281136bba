"""moebalance's perfect router in PyTorch engines: vLLM 0.26 and 0.32 and SGLang 0.5.16 by themselves, transformers 5.17 by one call.

Inert unless MOEBALANCE_CACHE names a folder that 'moebalance logits generate' filled. The learned gate is computed as
always; its logits are then replaced by a view of a persistent table, which adds no kernel and no synchronization, and
which CUDA graphs capture.

    MOEBALANCE_CACHE=DIR        the cache: a periodic entry for every rank
    ENABLE_PERFECT_ROUTER=1     balanced logits; without it MOEBALANCE_ROUTER decides
    MOEBALANCE_ROUTER=SPEC      off (the learned logits, the default), target:1.5 (drawn: rank max/mean 1.5), or
                                recorded:FILE (drawn: follows {"logical_count": [[...], ...]}, a list per layer), or
                                file:FILE (rows of the tensor "logits" of a safetensors file, in every layer from the first).
                                If set at all, each layer gets a table of its own, which set_router can change
    MOEBALANCE_COUNTS=DIR       record the slots per step, layer and expert, for 'moebalance counts' and 'bench --counts'
    MOEBALANCE_PROOF=DIR        one JSON file per rank that says what was done (default: MOEBALANCE_COUNTS)
    MOEBALANCE_BIAS=zero        set correction biases to zero, in whatever arm
    MOEBALANCE_PLACEMENT=FILE   with vLLM's --enable-eplb: move the experts before the first step as 'moebalance place
                                --write-vllm' wrote, or keep (balanced logits: keep, and no redundant experts), and leave
                                them there. Counts are those of physical experts
    MOEBALANCE_MODEL=NAME       which model's entries, where the cache holds several of one shape
    MOEBALANCE_TOKENS=N         the engine's largest batch, where CUDA graphs are captured before it is seen
    MOEBALANCE_STEPS=2048       most steps to record     MOEBALANCE_SEED=0   of the drawn routers
    MOEBALANCE_ANY_VERSION=1    try other versions of the engines than those that were tried

vLLM and SGLang find their entry points by themselves with this folder in PYTHONPATH. In a transformers driver, after the model is made:
    import moebalance_hook; moebalance_hook.transformers(model)
"""
import atexit
import glob
import hashlib
import inspect
import json
import multiprocessing
import os
import pathlib
import re
import struct
import sys
import threading
import time
from collections import namedtuple

import torch

MOST_LAYERS, RING, DRAWN_ROWS = 512, 64, 2048
IDLE = 2.0  # seconds without a step, after which what was counted is written
TRIED = {"vLLM": ("0.26.", "0.32."), "transformers": ("5.17.",), "SGLang": ("0.5.16",)}
Site = namedtuple("Site", "engine version rank ranks mode writes")  # this process; mode is dep or tep


def variable(name, default=""):
    return os.environ.get("MOEBALANCE_" + name) or default


def wanted():
    return "perfect" if os.environ.get("ENABLE_PERFECT_ROUTER") == "1" else variable("ROUTER", "off")


def refuse(text):
    raise RuntimeError("moebalance_hook: " + text)


def persistent(make, *shape, like, **options):
    """A tensor that outlives its step: engines compute in inference mode, routers and counts change outside as well."""
    with torch.inference_mode(False):
        return make(*shape, device=like.device, **options)


class Entry:
    """The periodic entry of this rank: ids [rows, top_k], row (t + layer * period) % rows for token t."""

    def __init__(self, site, experts, top_k):
        from safetensors import safe_open
        found, others = {}, set()
        for path in sorted(glob.glob(os.path.join(glob.escape(variable("CACHE")), "*.safetensors"))):
            with safe_open(path, framework="pt") as f:
                meta = f.metadata() or {}
            if meta.get("schema") != "moebalance.logits/1" or meta["tokens_per_rank"] != "any" or meta["layer"] != "0":
                continue
            fits = (int(meta["experts"]) == experts and top_k in (None, int(meta["top_k"])) and int(meta["ranks"]) == site.ranks
                    and (site.ranks == 1 or meta["mode"] == site.mode) and variable("MODEL", meta["model"]) == meta["model"])
            if fits and int(meta["rank"]) == site.rank:
                found[tuple(meta[key] for key in ("model", "method", "groups", "top_k_groups", "bias_sha256", "layout"))] = path
            others.add("{model}: {experts} experts, top-{top_k}, {ranks} ranks, {mode}".format(**meta))
        if len(found) != 1:
            refuse(f"MOEBALANCE_CACHE={variable('CACHE')}: want one periodic entry for {experts} experts, top-{top_k}, rank {site.rank} of "
                   f"{site.ranks}, {site.mode}; have {len(found)}. Choose with MOEBALANCE_MODEL, or make it with 'moebalance logits generate "
                   f"--ep {site.ranks} --mode {site.mode}'. The cache holds: {'; '.join(sorted(others)) or 'none'}")
        self.path, = found.values()
        with safe_open(self.path, framework="pt") as f:
            self.meta, self.ids = f.metadata(), f.get_tensor("expert_ids").long()
        with open(self.path, "rb") as f:
            self.sha256 = hashlib.sha256(f.read()).hexdigest()
        self.experts, self.top_k, self.period = experts, int(self.meta["top_k"]), int(self.meta["period"])
        self.groups, self.keep = max(1, int(self.meta["groups"])), int(self.meta["top_k_groups"])
        self.high, self.low = float(self.meta["high"]), float(self.meta["low"])
        ranks, layout = int(self.meta["ranks"]), self.meta["layout"]
        held = json.loads(layout) if layout != "contiguous" else [
            range(-(-r * experts // ranks), -(-(r + 1) * experts // ranks)) for r in range(ranks)]
        self.owner = torch.zeros(experts, dtype=torch.long)
        for rank, own in reversed(list(enumerate(held))):
            self.owner[list(own)] = rank

    def rank_load(self, ids):
        return torch.bincount(self.owner[ids].flatten(), minlength=int(self.meta["ranks"])).double()


class Drawn:
    """Skewed routing: rows of top_k distinct experts by Gumbel noise on the log of a popularity, within the groups."""

    def __init__(self, spec, entry, site):
        self.entry, self.base = entry, None
        self.seed = int(variable("SEED", "0")) * 1000003 + (site.rank if site.mode == "dep" else 0) * 7919
        kind, _, value = spec.partition(":")
        if kind == "recorded" and value:
            with open(value) as f:
                counts = torch.tensor(json.load(f)["logical_count"], dtype=torch.float64)
            self.counts = counts.reshape(-1, *counts.shape[-2:]).sum(0)  # over steps, where there are any
            if self.counts.shape[-1] != entry.experts:
                refuse(f"{value}: want counts of {entry.experts} experts, have {self.counts.shape[-1]}")
        elif kind == "file" and value:
            from safetensors import safe_open
            with safe_open(value, framework="pt") as f:
                self.counts, self.base = None, f.get_tensor("logits")
            if self.base.shape[-1] != entry.experts or not len(self.base):
                refuse(f"{value}: want logits of {entry.experts} experts, have {list(self.base.shape)}")
        elif kind == "target" and value:
            self.counts, self.base = None, self.aim(float(value))
        else:
            refuse(f"unknown router {spec!r}: want perfect, off, target:MAX_OVER_MEAN, recorded:FILE or file:FILE")

    def chooser(self, seed):
        e, n = self.entry, DRAWN_ROWS
        uniform = torch.rand(n, e.experts, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        noise = -torch.log(-torch.log(uniform.clamp(1e-12, 1 - 1e-12)))

        def choose(popularity):
            score = popularity + noise
            if e.groups > 1:
                grouped = score.view(n, e.groups, -1)
                best = grouped.topk(min(2, grouped.shape[2])).values.sum(-1).topk(e.keep).indices
                closed = torch.full((n, e.groups), -torch.inf, dtype=score.dtype).scatter_(1, best, 0.0)
                score = (grouped + closed.unsqueeze(-1)).flatten(1)
            return score.topk(e.top_k).indices
        return choose

    def aim(self, target):
        """Rows whose rank max/mean is the target: bisects the advantage of rank 0's experts."""
        e, choose = self.entry, self.chooser(self.seed + 1)
        shape = (e.owner == 0).double() + 0.3 * torch.randn(e.experts, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

        def reached(s):
            load = e.rank_load(choose(s * shape))
            return float(load.max() / load.mean())
        low, high = 0.0, 40.0
        for _ in range(30):
            middle = (low + high) / 2
            low, high = (middle, high) if reached(middle) < target else (low, middle)
        if abs(reached(low) - target) > 0.02:
            refuse(f"target:{target}: want a rank max/mean from {reached(0.0):.2f} to {reached(40.0):.2f} for {e.meta['ranks']} ranks")
        return choose(low * shape)

    def follow(self, counts, seed):
        """Rows in which each expert comes as often as counted."""
        e, choose = self.entry, self.chooser(seed)
        want = (counts * e.top_k / counts.sum()).clamp(max=0.999)
        popularity = torch.log(want + 1e-6)
        for _ in range(20):
            got = torch.bincount(choose(popularity).flatten(), minlength=e.experts) / DRAWN_ROWS
            popularity += 0.7 * torch.log((want + 1 / DRAWN_ROWS) / (got + 1 / DRAWN_ROWS))
        return choose(popularity)

    def rows(self, layer):
        """What a layer's table repeats: the experts of each row, or whole logits."""
        if self.base is not None and self.base.is_floating_point():
            return self.base
        if self.counts is None:
            return self.level(self.shuffled(layer)[self.base])
        lap, row = divmod(layer, len(self.counts))  # more layers than recorded: again, permuted
        counts = self.counts[row]
        return self.level(self.follow(counts[self.shuffled(lap)] if lap else counts, self.seed + 2 + layer))

    def shuffled(self, layer):
        """A permutation of the experts that keeps ranks and groups together, another one for each layer."""
        e, generator = self.entry, torch.Generator().manual_seed(int(variable("SEED", "0")) + 31 * layer)
        sizes, ranks = [e.experts], int(e.meta["ranks"])
        for size in sorted({e.experts // e.groups, e.experts // ranks}, reverse=True) + [1]:
            if sizes[-1] % size == 0 and (size != e.experts // ranks or e.meta["layout"] == "contiguous"):
                sizes.append(size)
        order = torch.arange(e.experts)
        for outer, inner in zip(sizes, sizes[1:]):
            blocks = order.view(-1, outer // inner, inner)
            order = torch.stack([b[torch.randperm(len(b), generator=generator)] for b in blocks]).flatten()
        return order

    def level(self, ids, first=256):
        """The same rows, the first ones ordered so that small batches have the ranks' shares as well."""
        e = self.entry
        ranks = int(e.meta["ranks"])
        load = torch.zeros(len(ids), ranks, dtype=torch.float64).scatter_add_(1, e.owner[ids], torch.ones_like(ids, dtype=torch.float64))
        share, total, order, free = load.mean(0), torch.zeros(ranks, dtype=torch.float64), [], torch.zeros(len(ids), dtype=torch.float64)
        for t in range(first):
            i = int(((total + load - (t + 1) * share) ** 2).sum(1).add(free).argmin())
            order.append(i)
            free[i] = torch.inf
            total = total + load[i]
        rest = torch.ones(len(ids), dtype=torch.bool)
        rest[order] = False
        return torch.cat([ids[order], ids[rest]])


class Layer:
    def __init__(self, name, index, slot):
        self.name, self.index, self.slot, self.offset, self.captured = name, index, slot, 0, False
        self.tables = {}  # by dtype: vLLM's gate of DeepSeek-V3 gives small batches float32, large ones bfloat16


class Hook:
    """What this process replaces and records."""

    def __init__(self):
        self.spec, self.own_tables = wanted(), bool(variable("ROUTER"))
        self.layers, self.site, self.entry, self.drawn, self.shared = {}, None, None, None, {}
        self.experts, self.top_k, self.bias = None, None, set()
        self.slots = self.placement = None  # physical experts, which are counted; what moved them
        self.counts = self.ring = self.base = None
        self.filled, self.steps, self.ended, self.tokens, self.records, self.last = 0, 0, 0, 0, [], None
        self.known = {}  # rows per layer of the routers set so far
        self.lock, self.writing, self.unfinished = threading.Lock(), threading.Lock(), False  # unfinished: a step that is not recorded yet

    def layer(self, name, site, logits, top_k, bias):
        """The state of a layer, made at its first call, which must be eager."""
        if name in self.layers:
            return self.layers[name]
        self.site, experts, number = site, logits.shape[-1], re.search(r"\.(\d+)\.", name + ".")
        if self.experts not in (None, experts):
            refuse(f"layer {name} has {experts} experts, others {self.experts}")
        self.experts, self.top_k = experts, top_k or self.top_k
        if self.spec != "off" and self.entry is None:
            self.entry = Entry(site, experts, top_k)
            self.top_k = self.entry.top_k
            self.drawn = None if self.spec == "perfect" else Drawn(self.spec, self.entry, site)
        index, taken = int(number[1]) if number else len(self.layers), {layer.index for layer in self.layers.values()}
        layer = Layer(name, max(taken) + 1 if index in taken else index, len(self.layers))
        if layer.slot >= MOST_LAYERS:
            refuse(f"want at most {MOST_LAYERS} layers")
        self.bias.add(self.judge(name, bias))
        self.layers[name] = layer
        return layer

    def judge(self, name, bias):
        """What becomes of a correction bias: read once."""
        if bias is None:
            return "none"
        if variable("BIAS") == "zero":
            bias.data.zero_()
            return "zeroed"
        if self.spec == "off":
            return "learned"
        values = bias.detach().float().cpu()
        limit = float(self.entry.meta["bias_spread_survived"].replace("any", "inf"))
        if self.drawn or self.own_tables:
            limit = min(limit, 0.5 if self.entry.groups > 1 else 1.0)
        elif hashlib.sha256(struct.pack(f"<{len(values)}f", *values.tolist())).hexdigest() == self.entry.meta["bias_sha256"]:
            return "of the entry"
        spread = float(values.max() - values.min())
        if not spread < limit:
            refuse(f"layer {name}: the correction bias spreads over {spread:g}, the logits tolerate less than {limit:g}: set MOEBALANCE_BIAS=zero "
                   "in both arms, or make the entry with the bias ('moebalance logits generate --bias')")
        return "tolerated"

    def logits(self, layer, learned):
        """A view of the layer's table in place of the learned logits."""
        if self.spec == "off":
            return learned
        tokens = learned.numel() // self.experts
        capturing = learned.is_cuda and torch.cuda.is_current_stream_capturing()
        table = layer.tables.get(learned.dtype)
        if table is None or layer.offset + tokens > len(table):
            if capturing or layer.captured and table is not None:
                refuse(f"layer {layer.name}: {tokens} tokens, more than before CUDA graphs were captured: set MOEBALANCE_TOKENS to the engine's "
                       "largest batch (vLLM: max_num_batched_tokens)")
            table = layer.tables[learned.dtype] = self.make(layer, tokens, learned)
        layer.captured = layer.captured or capturing
        return table[layer.offset:layer.offset + tokens].view(learned.shape)

    def make(self, layer, tokens, like):
        rows = max(tokens, int(variable("TOKENS", "0")), *map(len, layer.tables.values()))
        if self.own_tables or self.drawn:
            return self.fill(persistent(torch.empty, rows, self.experts, like=like, dtype=like.dtype), self.rows(layer.index))
        layer.offset, rows = layer.index * self.entry.period % len(self.entry.ids), rows + len(self.entry.ids)
        table = self.shared.get(like.dtype)
        if table is None or len(table) < rows:
            table = self.shared[like.dtype] = self.fill(
                persistent(torch.empty, rows, self.experts, like=like, dtype=like.dtype), self.entry.ids)
        return table

    def rows(self, layer):
        if self.drawn:
            return self.drawn.rows(layer)
        return self.entry.ids.roll(-(layer * self.entry.period), 0)

    def fill(self, table, rows):
        rows = rows[torch.arange(len(table)) % len(rows)].to(table.device)
        if rows.is_floating_point():
            return table.copy_(rows)
        return table.fill_(self.entry.low).scatter_(1, rows, self.entry.high)

    def set_router(self, spec):
        """Another router in the same tables: also for CUDA graphs already captured."""
        if spec == self.spec:
            return
        if self.spec == "off" or spec == "off" or not self.own_tables:
            refuse(f"cannot change from {self.spec} to {spec} within a launch: start it with MOEBALANCE_ROUTER=target:1 or another drawn router")
        drawn = None if spec == "perfect" else Drawn(spec, self.entry, self.site)
        self.spec, self.drawn = spec, drawn
        if spec not in self.known:
            self.known[spec] = {layer.index: self.rows(layer.index) for layer in self.layers.values()}
        for layer in self.layers.values():
            for table in layer.tables.values():
                self.fill(table, self.known[spec][layer.index])

    def seen(self, layer, ids):
        """Adds a layer's choices; id -1 is padding."""
        if self.counts is None:
            self.slots = self.slots or self.experts
            self.counts = persistent(torch.zeros, MOST_LAYERS, self.slots + 1, like=ids, dtype=torch.int64)
            self.one = persistent(torch.ones, 1, like=ids, dtype=torch.int64)
        self.top_k, flat = ids.shape[-1], ids.reshape(-1).long()
        self.counts[layer.slot].scatter_add_(0, flat.masked_fill(flat < 0, self.slots), self.one.expand(flat.shape))

    def step(self, tokens=0):
        """Begins a step: what was counted since the last one is the step before. The first one ends the warm-up."""
        with self.lock:
            if self.last is None:
                self.last = torch.zeros(MOST_LAYERS, self.slots or 1, dtype=torch.int64) if self.counts is None else self.counts[:, :-1].to("cpu", copy=True)
                atexit.register(self.write)
                threading.Thread(target=self.write_when_idle, daemon=True).start()
            self.record()
            self.steps, self.tokens, self.unfinished = self.steps + 1, self.tokens + tokens, True  # the engine sets ended
        if self.steps == 2:
            self.prove()
            print(self.claim(), file=sys.stderr, flush=True)

    def record(self):
        """Ends a step that has begun."""
        if self.unfinished and self.counts is not None and len(self.records) + self.filled < int(variable("STEPS", "2048")):
            if self.last.shape[1] != self.slots:
                self.last = torch.zeros(MOST_LAYERS, self.slots, dtype=torch.int64)
            if self.ring is None or self.ring.shape[1] != len(self.layers):
                self.drain()
                self.ring = persistent(torch.empty, RING, len(self.layers), self.slots, like=self.counts, dtype=torch.int64)
            self.ring[self.filled].copy_(self.counts[:len(self.layers), :-1])
            self.filled += 1
            if self.filled == RING:
                self.drain()
        self.unfinished = False

    def claim(self):
        return f"moebalance hook: rank {self.site.rank} of {self.site.ranks} routes {len(self.layers)} layers by {self.spec}"

    def drain(self):
        if self.filled:
            for now in self.ring[:self.filled].cpu():
                step = now - self.last[:len(now)]
                self.last[:len(now)] = now
                if self.site.mode == "dep" or step.any():
                    self.records.append(step.int())
        self.filled = 0

    def write_when_idle(self):
        """So that a process that is killed has lost no more than what ran since the engine last waited for requests."""
        before = written = 0
        while True:
            time.sleep(IDLE)
            if self.steps == self.ended == before != written:
                self.write()
                written = before
            before = self.steps

    def write(self):
        """Writes all that was recorded: when the engine is idle, and at the end of the process."""
        if self.site is not None and self.last is not None:
            with self.writing:
                self.write_files(self.snapshot())

    def snapshot(self):
        """The steps that have ended. Others wait for it to begin, but not for the files."""
        with self.lock:
            if self.counts is not None and self.counts.is_cuda:
                torch.cuda.synchronize(self.counts.device)  # steps may run in another stream
            if self.steps == self.ended:
                self.record()
            self.drain()
            return list(self.records)

    def write_files(self, records):
        folder = variable("COUNTS")
        if folder and records and self.site.writes:
            from safetensors.torch import save_file
            order = list(self.layers.values())
            counts = {f"{i}_{order[slot].index}": row for i, step in enumerate(records) for slot, row in enumerate(step)}
            self.save(folder, f"rank{self.site.rank}.safetensors", lambda path: save_file(counts, path))
            meta = {"num_experts": self.slots, "num_experts_per_token": self.top_k, "ep_size": self.site.ranks, "mode": self.site.mode}
            if self.site.rank == 0:
                self.save(folder, "meta_info.json", lambda path: pathlib.Path(path).write_text(json.dumps(meta)))
        self.prove()

    def save(self, folder, name, write):
        os.makedirs(folder, exist_ok=True)
        aside = os.path.join(folder, f".{name}.{os.getpid()}.{threading.get_ident()}")
        write(aside)
        os.replace(aside, os.path.join(folder, name))

    def prove(self):
        folder = variable("PROOF", variable("COUNTS"))
        if not folder or not self.site.writes:
            return
        proof = {"schema_version": 1, "kind": "moebalance hook", "claim": self.claim(), "engine": self.site.engine, "engine_version": self.site.version, "rank": self.site.rank,
                 "ranks": self.site.ranks, "mode": self.site.mode, "arm": "perfect" if self.spec == "perfect" else "normal", "router": self.spec,
                 "layers": len(self.layers), "experts": self.experts, "physical_experts": self.slots, "placement": self.placement, "top_k": self.top_k, "correction_bias": sorted(self.bias),
                 "entry": self.entry and os.path.basename(self.entry.path), "entry_sha256": self.entry and self.entry.sha256,
                 "plan": self.entry and self.entry.meta["plan"], "steps": self.steps, "tokens": self.tokens or None, "steps_recorded": len(self.records)}
        self.save(folder, f"moebalance-hook.rank{self.site.rank}.json", lambda path: pathlib.Path(path).write_text(json.dumps(proof, indent=1) + "\n"))

    def totals(self):
        """Slots per layer and expert since reset."""
        now = self.counts[:len(self.layers), :-1].cpu()
        counts = now if self.base is None else now - self.base
        return {"layers": [layer.index for layer in self.layers.values()], "counts": counts.tolist()}

    def reset(self):
        self.base = self.counts[:len(self.layers), :-1].to("cpu", copy=True)


HOOK = Hook()


def set_router(spec):
    """Within a launch that began with MOEBALANCE_ROUTER set: perfect, target:1.2, recorded:FILE from the next step on."""
    HOOK.set_router(spec)


class WorkerExtension:
    """LLM(..., worker_extension_cls="moebalance_hook.WorkerExtension"); llm.collective_rpc("moebalance_router", args=("perfect",))"""

    def moebalance_router(self, spec):
        HOOK.set_router(spec)

    def moebalance_placement(self, path):
        vllm_place(HOOK.site.version, self.model_runner.eplb_state, path)

    def moebalance_counts_reset(self):
        HOOK.reset()

    def moebalance_counts(self):
        return HOOK.totals()


def tried(engine):
    return " or ".join(version + "x" * version.endswith(".") for version in TRIED[engine])


def check_version(engine, version):
    if not version.startswith(TRIED[engine]) and not variable("ANY_VERSION"):
        refuse(f"{engine} {version}: want {engine} {tried(engine)}, which was tried; set MOEBALANCE_ANY_VERSION=1 to try this one")


def expect(engine, owner, method, *parameters):
    """Refuses by name what is not as in the version that was tried."""
    have = list(inspect.signature(getattr(owner, method)).parameters) if hasattr(owner, method) else None
    if have is None or any(p not in have for p in parameters):
        refuse(f"{engine}: want {owner.__name__}.{method} with {', '.join(parameters) or 'any parameters'}, have "
               f"{'no such method' if have is None else ', '.join(have)}; {engine.split()[0]} {tried(engine.split()[0])} has it")


def vllm():
    """The entry point, which vLLM calls in every process before it builds the model."""
    if not variable("CACHE"):
        return
    from vllm import __version__ as version
    check_version("vLLM", version)
    from vllm.model_executor.layers.fused_moe.runner.moe_runner import MoERunner
    if hasattr(MoERunner, "moebalance_hook"):
        return
    expect("vLLM " + version, MoERunner, "_apply_quant_method", "hidden_states", "router_logits")
    MoERunner.moebalance_hook, inner = version, MoERunner._apply_quant_method
    os.environ.setdefault("VLLM_WORKER_SHUTDOWN_TIMEOUT_SECONDS", "30")  # time to write the counts

    def apply(self, *args, **named):
        if torch.compiler.is_compiling():
            refuse("vLLM compiles its MoE layers into the model where there is no GPU: want --enforce-eager")
        if "router_logits" not in named:
            refuse(f"vLLM {version}: want _apply_quant_method called with router_logits as a keyword")
        layer, learned = HOOK.layers.get(self.layer_name), named["router_logits"]
        if layer is None:
            layer = vllm_layer(self, version, learned)
        named["router_logits"] = HOOK.logits(layer, learned)
        return inner(self, *args, **named)

    MoERunner._apply_quant_method = apply


def vllm_layer(runner, version, learned):
    c = runner.moe_config
    if c.dp_size > 1 and c.ep_size not in (1, c.dp_size):
        refuse(f"vLLM with data parallel {c.dp_size} and expert parallel {c.ep_size}: want all data parallel (dep), or none (tep)")
    if getattr(getattr(c, "moe_parallel_config", None), "enable_eplb", False):
        if not variable("PLACEMENT"):
            refuse("vLLM moves experts between ranks with EPLB: want it off, or MOEBALANCE_PLACEMENT")
        HOOK.slots = c.num_experts
    # Quantization methods of the old interface gather the tokens of all ranks before they are routed.
    own = c.dp_size > 1 and c.ep_size > 1 and not getattr(runner, "do_naive_dispatch_combine", False)
    site = Site("vllm", version, c.ep_rank if c.ep_size > 1 else 0, c.ep_size, "dep" if own else "tep", c.ep_size > 1 or c.tp_rank == 0)
    if not HOOK.layers:
        vllm_steps(version)
    layer = HOOK.layer(runner.layer_name, site, learned, c.experts_per_token, getattr(runner.router, "e_score_correction_bias", None))
    # A monolithic kernel chooses the experts itself, unseen: it has no counts, and no measured proof.
    monolithic = getattr(getattr(getattr(runner, "routed_experts", None), "quant_method", None), "is_monolithic", False)
    if variable("COUNTS") and not monolithic:
        expect("vLLM " + version, type(runner.router), "select_experts", "router_logits")
        select = runner.router.select_experts

        def counted(*args, **named):
            chosen = select(*args, **named)
            HOOK.seen(layer, chosen[1])
            return chosen
        runner.router.select_experts = counted
    return layer


def vllm_steps(version):
    from vllm.v1.worker.gpu_worker import Worker
    for method, parameters in (("execute_model", ["scheduler_output"]), ("execute_dummy_batch", []), ("shutdown", [])):
        expect("vLLM " + version, Worker, method, *parameters)
    shutdown = Worker.shutdown

    def stepped(inner, tokens):  # a dummy batch is another data-parallel rank's step, with the same collectives
        def run(self, *args, **named):
            scheduled = tokens(*args, **named)
            if scheduled == 0 and self.parallel_config.distributed_executor_backend != "external_launcher":
                return inner(self, *args, **named)  # only takes note of ended requests; a dummy batch follows where others compute
            if HOOK.steps == 0 and variable("COUNTS") and self.parallel_config.pipeline_parallel_size > 1:
                refuse("MOEBALANCE_COUNTS does not tell pipeline stages apart: want pipeline_parallel_size 1")
            if HOOK.placement is None and variable("PLACEMENT"):
                vllm_place(version, getattr(self.model_runner, "eplb_state", None), variable("PLACEMENT"))
            HOOK.step(scheduled or 0)
            out = inner(self, *args, **named)
            HOOK.ended = HOOK.steps
            return out
        return run

    def close(self, *args, **named):
        HOOK.write()
        return shutdown(self, *args, **named)

    Worker.execute_model = stepped(Worker.execute_model, lambda scheduler_output, *_, **__: scheduler_output.total_num_scheduled_tokens)
    Worker.execute_dummy_batch, Worker.shutdown = stepped(Worker.execute_dummy_batch, lambda *_, **__: None), close


class Placed:
    """An EPLB policy that knows one placement: slots is the logical expert of each physical one, [layers, physical experts]."""

    def __init__(self, slots):
        self.slots = slots

    def rebalance_experts(self, *loads_and_sizes):
        return self.slots


def vllm_place(version, state, path):
    """Has vLLM's EPLB move the experts as a file says. Whenever it rebalances later, it finds them in place."""
    if state is None:
        refuse("MOEBALANCE_PLACEMENT: want vLLM with --enable-eplb and VLLM_USE_V2_MODEL_RUNNER=0")
    expect("vLLM " + version, type(state), "rearrange", "is_profile")
    model, = state.model_states.values()
    slots = model.physical_to_logical_map.cpu()
    if path != "keep":
        with open(path) as f:
            given = json.load(f)
        if given.get("record_type") != "eplb_initial_mapping":
            refuse(f"{path}: want the file of 'moebalance place --write-vllm'")
        rows, size = given["initial_global_assignments"], list(slots.shape)
        slots = torch.tensor([rows[str(layer)] for layer in range(len(rows))])
        if list(slots.shape) != size:
            refuse(f"{path}: want {size} layers and physical experts, have {list(slots.shape)}; set the latter with --eplb-config "
                   '\'{"num_redundant_experts": N}\'')
    if HOOK.spec == "perfect" and (path != "keep" or slots.shape[1] > HOOK.experts):
        refuse(f"{path}: the balanced logits are made for contiguous experts: want MOEBALANCE_PLACEMENT=keep and no redundant experts in the perfect arm")
    state.policy, state.is_async = Placed(slots), False
    with torch.inference_mode():
        state.rearrange()
    HOOK.placement = os.path.basename(path)


class ReplaceLinear(torch.overrides.TorchFunctionMode):
    """Replaces what F.linear with the router's weight returns, once it has run, and keeps what the last top-k chose: behind
    it transformers' expert parallelism renumbers the experts by rank."""

    def __init__(self, experts, replace):
        super().__init__()
        self.experts, self.replace, self.chosen = experts, replace, None

    def __torch_function__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if func in (torch.topk, torch.Tensor.topk):
            self.chosen = out.indices
        if func is torch.nn.functional.linear and self.replace and out.shape[-1] == self.experts:
            replace, self.replace = self.replace, None
            return replace(out)
        return out


def transformers(model, rank=None, ranks=None, mode="tep"):
    """Hooks every router of a transformers model, class *TopKRouter. Rank and ranks are those of torch.distributed; its expert parallelism is tep."""
    if not variable("CACHE"):
        return model
    import transformers as engine
    check_version("transformers", engine.__version__)
    joined = torch.distributed.is_available() and torch.distributed.is_initialized()
    rank = (torch.distributed.get_rank() if joined else 0) if rank is None else rank
    site = Site("transformers", engine.__version__, rank, ranks or (torch.distributed.get_world_size() if joined else 1), mode, True)
    routers = [(name, m) for name, m in model.named_modules() if re.search(r"Top[kK]Router$", type(m).__name__)]
    if not routers:
        refuse(f"transformers {engine.__version__}: no module of {type(model).__name__} is a ...TopKRouter")
    for name, router in routers:
        router.forward = transformers_forward(site, name, router)
    model.register_forward_pre_hook(lambda *_: HOOK.step())
    model.register_forward_hook(lambda *_: setattr(HOOK, "ended", HOOK.steps))
    return model


def transformers_forward(site, name, router):
    inner, top_k, bias = router.forward, getattr(router, "top_k", None), getattr(router, "e_score_correction_bias", None)

    @torch.compiler.disable
    def forward(*args, **named):
        def replace(learned):
            return HOOK.logits(HOOK.layer(name, site, learned, top_k, bias), learned)
        with ReplaceLinear(router.weight.shape[0], replace) as swap:
            out = inner(*args, **named)
        if swap.replace:
            refuse(f"router {name} ({type(router).__name__}) computes its logits without F.linear")
        if variable("COUNTS"):
            if swap.chosen is None:
                refuse(f"router {name} ({type(router).__name__}) chooses its experts without topk, so they cannot be counted")
            HOOK.seen(HOOK.layers[name], swap.chosen)
        return out
    return forward


def sglang():
    """The entry point, which SGLang calls in every process. SGLang would log an exception and go on without the hook, so this ends the process."""
    try:
        if variable("CACHE"):
            sglang_hook()
    except Exception as e:
        sys.exit(str(e))


def sglang_hook():
    from sglang import __version__ as version
    check_version("SGLang", version)
    from sglang.srt.entrypoints.engine import Engine
    from sglang.srt.layers.moe.topk import TopK
    from sglang.srt.model_executor.model_runner import ModelRunner
    for owner, method, *parameters in ((TopK, "forward_cuda", "hidden_states", "router_logits"), (TopK, "forward_native", "hidden_states", "router_logits"),
                                       (TopK, "forward"), (ModelRunner, "forward", "forward_batch"), (Engine, "shutdown")):
        expect("SGLang " + version, owner, method, *parameters)
    route, run, shutdown = TopK.forward, ModelRunner.forward, Engine.shutdown

    def forward(self, hidden_states, router_logits, *args, **named):  # calls forward_cuda, forward_cpu or forward_native
        layer = getattr(self, "moebalance_layer", None) or sglang_layer(self, version, router_logits)
        out = route(self, hidden_states, HOOK.logits(layer, router_logits), *args, **named)
        if variable("COUNTS") and hasattr(out, "topk_ids"):  # not where the experts' kernel chooses, unseen
            HOOK.seen(layer, out.topk_ids)
        return out

    def step(self, forward_batch, *args, **named):
        HOOK.step(len(forward_batch.input_ids))
        out = run(self, forward_batch, *args, **named)
        HOOK.ended = HOOK.steps
        return out

    def close(self):
        time.sleep(3 * IDLE if multiprocessing.active_children() else 0)  # SGLang kills its workers, which write when they are idle
        return shutdown(self)

    TopK.forward, ModelRunner.forward, Engine.shutdown = forward, step, close


def sglang_layer(topk, version, learned):
    from sglang.srt.layers.moe import utils
    from sglang.srt.runtime_context import get_parallel, get_server_args
    p, args, config = get_parallel(), get_server_args(), topk.topk_config
    moved = args.enable_eplb or args.ep_num_redundant_experts or args.init_expert_location != "trivial"
    compiled = args.enable_torch_compile or args.cuda_graph_config.prefill.backend == "tc_piecewise"
    for unfit, want in ((args.speculative_algorithm, "no speculative decoding"), (config.num_fused_shared_experts, "--disable-shared-experts-fusion"),
                        (moved, "no EPLB and no expert location"), (p.pp_size > 1, "no pipeline parallelism"),
                        (compiled, "no --enable-torch-compile, and --cuda-graph-backend-prefill breakable"),
                        (p.moe_dp_size > 1 or args.dp_size > 1 and not args.enable_dp_attention, "one replica, or --enable-dp-attention")):
        if unfit:
            refuse(f"SGLang {version}: want {want}")
    # Graphs of decode are captured before a prefill is seen. Without an all-to-all backend every rank routes the tokens of all.
    os.environ.setdefault("MOEBALANCE_TOKENS", str(args.dp_size * max(args.chunked_prefill_size, 0) or args.max_prefill_tokens))
    own = p.moe_ep_size > 1 and (not utils.get_moe_a2a_backend().is_none() or utils.should_use_flashinfer_cutlass_moe_fp4_allgather())
    site = Site("sglang", version, p.moe_ep_rank, p.moe_ep_size, "dep" if own else "tep", p.moe_tp_rank == 0)
    name = f"layers.{len(HOOK.layers) if topk.layer_id is None else topk.layer_id}"
    topk.moebalance_layer = HOOK.layer(name, site, learned, config.top_k, config.correction_bias)
    return topk.moebalance_layer
