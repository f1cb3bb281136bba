"""Counts slots on the GPU: one kernel a layer, which CUDA graphs capture."""

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["slots"])
def _count(ids, counts, slots, experts, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    expert = tl.load(ids + at, mask=at < slots, other=-1).to(tl.int64)
    tl.atomic_add(counts + expert, tl.full((BLOCK,), 1, tl.int64), mask=(expert >= 0) & (expert < experts))


def add(ids: torch.Tensor, counts: torch.Tensor, experts: int) -> None:
    """Adds each expert's slots to its count; other numbers are padding."""
    if ids.numel():
        _count[(triton.cdiv(ids.numel(), 256),)](ids.contiguous(), counts, ids.numel(), experts, BLOCK=256)
