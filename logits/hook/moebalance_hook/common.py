"""What all files of the hook share."""

import contextlib
import fcntl
import functools
import glob
import inspect
import json
import os
import pathlib
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import torch

# Releases; others are tested as they run.
TRIED = {
    "vllm": "0.26, 0.32, 0.33 with kernels of 0.32",
    "sglang": "0.5.16, 0.5.17, 0.5.23 with kernels of 0.5.16",
    "transformers": "5.17, 5.23, 5.24",
}
HASH = "tokens choose its experts by their numbers, so no logits balance it; want a model without"


class Site(NamedTuple):
    """This process."""

    engine: str
    engine_version: str
    rank: int  # expert-parallel
    ranks: int
    mode: str  # dep or tep
    writes: bool  # of the processes that share a rank's experts, one writes


class Gate(NamedTuple):
    """What an engine says of a layer's routing, None where it does not."""

    top_k: int | None = None
    groups: int | None = None  # 0 or 1: none
    top_k_groups: int | None = None
    scoring: str | None = None
    bias: torch.Tensor | None = None


def variable(name: str, default: str = "") -> str:
    return os.environ.get("MOEBALANCE_" + name) or default


def refuse(text: str) -> NoReturn:
    raise RuntimeError("moebalance_hook: " + text.replace("\n", " "))


def refuse_first(engine: str, *cases: tuple[Any, str]) -> None:
    """Refuses by the first case that is so."""
    for so, want in cases:
        if so:
            refuse(f"{engine} {want}")


def persistent(make: Callable, *shape, like: torch.Tensor, **options) -> torch.Tensor:
    """A tensor that outlives its step: engines compute in inference mode, routers and counts change outside as well."""
    with torch.inference_mode(False):
        return make(*shape, device=like.device, **options)


def capturing() -> bool:
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


def expect(engine: str, owner: Any, method: str, *parameters: str) -> None:
    """Refuses by name what an engine's release has otherwise."""
    have = inspect.signature(getattr(owner, method)).parameters if hasattr(owner, method) else None
    if have is None or not have.keys() >= {*parameters}:
        want = f"{owner.__name__}.{method} with {', '.join(parameters) or 'any parameters'}"
        found, kind = "no such method" if have is None else ", ".join(have), engine.split()[0]
        refuse(f"{engine}: want {want}, have {found}; {kind} {TRIED[kind.lower()]} has it")


def place_in_world() -> tuple[int, int]:
    """Global rank and ranks: an expert-parallel rank is not unique under pipelines."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return 0, 1


def save(folder: str, name: str, write: Callable[[str], Any]) -> None:
    """Writes a file aside and renames it, so that nobody reads half of one."""
    os.makedirs(folder, exist_ok=True)
    aside = os.path.join(folder, f".{name}.{os.getpid()}.{threading.get_ident()}")
    write(aside)
    os.replace(aside, os.path.join(folder, name))


def save_json(folder: str, name: str, value: dict[str, Any]) -> None:
    save(folder, name, lambda path: pathlib.Path(path).write_text(json.dumps(value, indent=1) + "\n"))


@functools.cache
def under_nsys() -> bool:
    injected = {"NVTX_INJECTION64_PATH", "NSYS_PROFILING_SESSION_ID"} & os.environ.keys()
    return bool(injected) and torch.cuda.is_available()


def named(text: str) -> contextlib.AbstractContextManager:
    """A range in the profiler that listens, if any: PyTorch's, or nsys."""
    if torch.autograd._profiler_enabled():
        return torch.profiler.record_function(text)
    return torch.cuda.nvtx.range("{}", text) if under_nsys() else contextlib.nullcontext()


class Unwritten:
    """A lock on a file beside the counts, held while some of them are in no file. Whoever ends the engine waits for it
    with wait_for_files; a process that is killed lets go of it."""

    file: Any = None

    def hold(self, rank: int) -> None:
        folder = variable("COUNTS") or variable("PROOF")
        if folder and self.file is None:
            with contextlib.suppress(OSError):  # a file system without locks
                os.makedirs(folder, exist_ok=True)
                self.file = open(os.path.join(folder, f".unwritten.rank{rank}"), "w")
                fcntl.flock(self.file, fcntl.LOCK_EX)

    def release(self) -> None:
        if self.file:
            self.file.close()
            self.file = None


def wait_for_files(seconds: float) -> None:
    """Until no process holds Unwritten, or the time has passed."""

    def wait() -> None:
        for path in glob.glob(os.path.join(glob.escape(variable("COUNTS") or variable("PROOF")), ".unwritten.*")):
            with contextlib.suppress(OSError), open(path, "w") as f:
                fcntl.flock(f, fcntl.LOCK_EX)

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    waiting.join(seconds)
