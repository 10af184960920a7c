"""Tells Hugging Face's accelerate where a loader's iteration is."""

from __future__ import annotations

import sys
from typing import Any


class Followed:
    """What accelerate asks an iteration: `accumulate` makes a step with the last batch of an epoch.

    `remainder`: gather_for_metrics keeps all rows.
    """

    end_of_dataloader = False
    remainder = -1


def followed() -> Followed | None:
    """Returns an object that the program's Accelerator follows, until it is dropped; None if there is none.

    accelerate follows the loaders that `prepare` has wrapped in classes of its own. It has no other way for a
    loader that `prepare` returns as it is.
    """
    state: Any = getattr(sys.modules.get("accelerate.state"), "GradientState", None)
    functions = hasattr(state, "_add_dataloader") and hasattr(state, "_remove_dataloader")
    if not functions or not getattr(state, "_shared_state", None):
        return None
    made = Followed()
    state()._add_dataloader(made)
    return made


def end(made: Followed) -> None:
    """Ends what `followed` has begun."""
    state: Any = sys.modules["accelerate.state"].GradientState()
    if any(each is made for each in getattr(state, "dataloader_references", ())):
        state._remove_dataloader(made)
