"""Options of torch's DataLoader that stoker does not use: harmless values, and replacements for others."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any, NamedTuple

import torch


def collated(samples: Any) -> Any:
    """A loader's `collate_fn`, for making another loader from its parts.

    Args:
        samples: from the dataset's `__getitems__`: a finished batch, or a list of samples.
    """
    return torch.utils.data.default_collate(samples) if isinstance(samples, list) else samples


class _Option(NamedTuple):
    now: Any  # the loader's attribute of that name: its value in torch's DataLoader without workers
    harmless: Callable[[Any], bool]  # whether nothing is lost with this value
    instead: str


def _none(value: Any) -> bool:
    return value is None


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _count(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not _flag(value) and int(value) >= 0


OPTIONS = {
    "num_workers": _Option(
        0,
        _count,
        "it must be a number from 0; decoding is done by threads in this process, as many as there are cores "
        "allotted to it, and runtime=stoker.Runtime(threads=…) sets their number",
    ),
    "prefetch_factor": _Option(
        None,
        lambda value: value is None or _count(value),
        "it must be a number or None; depth= is the number of batches in production",
    ),
    "persistent_workers": _Option(
        False, _flag, "it must be True or False; threads stay as long as the loader anyway"
    ),
    "in_order": _Option(True, _flag, "it must be True or False; batches come in order anyway"),
    "pin_memory_device": _Option(
        "",
        lambda value: isinstance(value, str),
        "it must be a string; memory is pinned for all devices anyway",
    ),
    "multiprocessing_context": _Option(
        None,
        lambda value: value is None or isinstance(value, str) or hasattr(value, "get_start_method"),
        "it must be None, a string or a context; there are no worker processes anyway",
    ),
    "timeout": _Option(
        0,
        lambda value: isinstance(value, numbers.Real) and not _flag(value) and value == 0,
        "there are no worker processes to wait for; Ctrl-C ends a wait",
    ),
    "worker_init_fn": _Option(
        None, _none, "there are no worker processes; every random draw follows from seed="
    ),
    "generator": _Option(
        None, _none, "seed= decides the order and every random transform, regardless of torch.manual_seed"
    ),
    "sampler": _Option(
        None,
        _none,
        "shuffle=, rank= and world= decide the order; source.subset(…), .weighted(…), .balanced() and "
        ".repeated(…) choose and weight samples",
    ),
    "batch_sampler": _Option(None, _none, "batch_size=, shuffle= and drop_last= decide what is in a batch"),
    "collate_fn": _Option(
        collated,
        lambda value: any(value is it for it in (None, collated, torch.utils.data.default_collate)),
        "batches are made in one piece; MixUp and CutMix are the last of transforms=",
    ),
}


def check(given: dict[str, Any]) -> None:
    """Raises TypeError for an option that torch does not have, or whose meaning would be lost."""
    for name, value in given.items():
        option = OPTIONS.get(name)
        if option is None:
            hint = "; its name here is drop_last" if name == "drop_remainder" else ""
            raise TypeError(f"stoker.torch.DataLoader has no option {name!r}{hint}")
        if not option.harmless(value):
            raise TypeError(f"stoker.torch.DataLoader has no {name}={value!r:.80}: {option.instead}")
