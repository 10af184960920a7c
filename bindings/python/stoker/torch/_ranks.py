"""Finds this process' rank and the number of processes."""

from __future__ import annotations

import os

import torch

from stoker._errors import FailedPreconditionError

Rank = tuple[int, int]  # rank, world


def of_process_group() -> Rank | None:
    """Returns the rank in torch.distributed; None while it has no process group."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return None


def of_environment(rank_counts: bool) -> Rank | None:
    """Returns RANK and WORLD_SIZE, which torchrun and others set; None if there is one process.

    Args:
        rank_counts: False: if only WORLD_SIZE is set, as by Lightning, any rank will do.

    Raises:
        FailedPreconditionError: there are several, and this process' rank is unknown.
    """
    text = os.environ.get("WORLD_SIZE", "")
    if not text:
        return None
    world = _number(text)
    if world is None or world < 1:
        raise _unknown(f"WORLD_SIZE={text[:40]!r}, which is not a number of processes")
    if world == 1:
        return None
    text = os.environ.get("RANK", "")
    if not text and not rank_counts:
        return 0, world
    rank = _number(text)
    if rank is None or rank >= world:
        what = f"RANK={text[:40]!r}, which is not a number from 0 to {world - 1}" if text else "no RANK"
        raise _unknown(f"WORLD_SIZE={world} and {what}")
    return rank, world


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None


def _unknown(found: str) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"which part of the samples is this process' is not known: the environment has {found}, and "
        "torch.distributed is not initialised",
        advice="Call torch.distributed.init_process_group before the first batch, or give rank= and world=",
    )
