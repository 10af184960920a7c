"""Explains where transforms are executed, in words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from stoker import _stoker
from stoker._parameters import Transform


def spec_of(transforms: Sequence[Transform], options: Mapping[str, Any]) -> str:
    """Returns the library's plan for these transforms; `options` are those of images."""
    return json.dumps({"transforms": [t._spec() for t in transforms], **options})


def places(spec: str) -> list[str]:
    """Returns for each transform "fused", "tile" or "row"."""
    return [where for _, where, _ in _stoker.explain(spec)]


def explained(spec: str, source: _stoker.Source | None = None) -> str:
    """Returns a line for each transform: its name, where it is executed, and how. `source`: whose samples
    may have objects, which some transforms need.
    """
    listed = _stoker.explain(spec, source)
    width = max((len(transform) for transform, _, _ in listed), default=0)
    return "\n".join(f"{transform:{width}}  {where:5}  {how}" for transform, where, how in listed)
