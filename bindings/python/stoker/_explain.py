"""Where transforms are done, in words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from stoker import _stoker
from stoker._parameters import Transform


def spec_of(transforms: Sequence[Transform], options: Mapping[str, Any]) -> str:
    """What the library makes a plan of; `options` are those of images."""
    return json.dumps({"transforms": [t._spec() for t in transforms], **options})


def places(spec: str) -> list[str]:
    """Of each transform: "fused", "tile" or "row"."""
    return [where for _, where, _ in _stoker.explain(spec)]


def explained(spec: str) -> str:
    """A line for each transform: what it is, where it is done, and how."""
    listed = _stoker.explain(spec)
    width = max((len(transform) for transform, _, _ in listed), default=0)
    return "\n".join(f"{transform:{width}}  {where:5}  {how}" for transform, where, how in listed)
