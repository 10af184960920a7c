"""Buckets: the lengths that the rows of a processor may have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stoker import _checks
from stoker._errors import InvalidArgumentError

MOST = 256
MOST_LENGTH = 1 << 20


@dataclass(frozen=True)
class Buckets:
    """Lengths for the rows of SigLIP2's processor (NaFlex), one for each step, as in timm's loader.

        siglip = stoker.processor({"image_processor_type": "Siglip2ImageProcessor"})
        loader = stoker.Loader(source, [siglip], batch_tokens=16384, buckets=stoker.Buckets((128, 256, 576)))

    Immutable. docs/batches.md says what batches they make.

    Args:
        lengths: the most patches of an image, and the length of its row, 1 to 1,048,576; at most 256 of them.
        weights: how often each of the lengths is drawn, relative to the others, from 0 on and not all 0; None
            means equally often.
        multiple: batches, but for those of the last step, have a multiple of this number of rows, 1 to
            1,048,576.

    Raises:
        ValueError, TypeError: naming the argument.
    """

    lengths: Sequence[int] = (128, 256, 576, 784, 1024)
    weights: Sequence[float] | None = None
    multiple: int = 1

    def __post_init__(self) -> None:
        given = _checks.sequence("lengths", self.lengths)
        if not 1 <= len(given) <= MOST:
            raise InvalidArgumentError(f"lengths has {len(given)} elements; it must have 1 to {MOST}")
        lengths = [_checks.integer(f"lengths[{i}]", one, 1, MOST_LENGTH) for i, one in enumerate(given)]
        if self.weights is not None:
            weights = _checks.weights("weights", self.weights, len(lengths), "length")
            object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "lengths", tuple(lengths))
        object.__setattr__(self, "multiple", _checks.integer("multiple", self.multiple, 1, MOST_LENGTH))

    def _text(self) -> str:
        """The loader spec's form."""
        weights = self.weights or (1,) * len(self.lengths)
        pairs = (f"{length}:{weight!r}" for length, weight in zip(self.lengths, weights))
        return f"{','.join(pairs)}%{self.multiple}"
