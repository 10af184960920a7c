"""MixUp and CutMix: mix whole batches; they come last in a `Loader`'s list of transforms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from stoker import _checks
from stoker._errors import InvalidArgumentError
from stoker._map import Map, split_off
from stoker._processor import Processor

_MOST_CLASSES = 2**24
_MOST_CHOICES = 16


class BatchTransform:
    """The base of transforms that mix the rows of a batch. Immutable; equal when all parameters are.

    Row i of a batch is mixed with row i - 1, the first one with the last, and labels become (rows,
    num_classes) float32, mixed likewise. The draws depend only on the loader's seed, the epoch and the
    batch's place in it.
    """

    @staticmethod
    def _chosen_by(transforms: Sequence[Any], p: Sequence[float] | None) -> RandomChoice:
        """What `stoker.RandomChoice` makes of a list with one of these."""
        return RandomChoice(transforms, p)

    def _spec(self) -> dict[str, Any]:
        raise NotImplementedError

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class _Mix(BatchTransform):
    alpha: float = 1.0
    num_classes: int | None = None

    def __post_init__(self) -> None:
        name = type(self).__name__
        self._set(alpha=_checks.real(f"{name}.alpha", self.alpha, 1e-6, 1e6))
        if self.num_classes is not None:
            classes = _checks.integer(f"{name}.num_classes", self.num_classes, 1, _MOST_CLASSES)
            self._set(num_classes=classes)

    def _choice(self) -> dict[str, Any]:
        return {"name": type(self).__name__, "alpha": self.alpha}

    def _spec(self) -> dict[str, Any]:
        return {"choices": [self._choice()], "num_classes": self.num_classes or 0}


@dataclass(frozen=True)
class MixUp(_Mix):
    """lam × row + (1 - lam) × the row before it, with one lam ~ Beta(alpha, alpha) for each batch.

    uint8 images are rounded to the nearest level, ties to even.

    Args:
        alpha: positive; the larger, the nearer lam is to ½.
        num_classes: number of classes; None means as many as the source has.

    Raises:
        ValueError, TypeError: naming the parameter.
    """


@dataclass(frozen=True)
class CutMix(_Mix):
    """Pastes a box of the previous row into each row: the same box in all rows of a batch.

    The box has 1 - lam of the image's area, minus the part outside the image; lam ~ Beta(alpha, alpha).
    Labels are weighted by the remaining area.

    Args:
        alpha: positive; the larger, the nearer lam is to ½.
        num_classes: number of classes; None means as many as the source has.

    Raises:
        ValueError, TypeError: naming the parameter.
    """


@dataclass(frozen=True)
class RandomChoice(BatchTransform):
    """One of several `MixUp` and `CutMix`, drawn for each batch.

    Args:
        transforms: 1 to 16 of them; those that give `num_classes` give the same.
        p: their weights, of any positive sum; None means all the same.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    transforms: Sequence[MixUp | CutMix]
    p: Sequence[float] | None = None

    def __post_init__(self) -> None:
        choices = _checks.sequence("RandomChoice.transforms", self.transforms)
        for place, choice in enumerate(choices):
            if not isinstance(choice, _Mix):
                raise TypeError(
                    f"RandomChoice.transforms[{place}] is {choice!r:.80}; it must be a MixUp or a CutMix"
                )
        if not 1 <= len(choices) <= _MOST_CHOICES:
            raise InvalidArgumentError(
                f"RandomChoice.transforms has {len(choices)} elements; it must have 1 to {_MOST_CHOICES}"
            )
        counts = {choice.num_classes for choice in choices} - {None}
        if len(counts) > 1:
            listed = " and ".join(str(count) for count in sorted(counts))
            raise InvalidArgumentError(f"RandomChoice.transforms have num_classes {listed}; they must agree")
        self._set(transforms=tuple(choices))
        if self.p is not None:
            self._set(p=_checks.weights("RandomChoice.p", self.p, len(choices)))

    def _spec(self) -> dict[str, Any]:
        choices = [choice._choice() for choice in self.transforms]
        classes = max(choice.num_classes or 0 for choice in self.transforms)
        spec: dict[str, Any] = {"choices": choices, "num_classes": classes}
        if self.p is not None:
            spec["p"] = list(self.p)
        return spec


def split(transforms: Iterable[Any]) -> tuple[Any, Processor | None, BatchTransform | None, Map | None]:
    """Returns the transforms of single images, which are not checked yet, a processor, the one that mixes
    batches, and a `Map`.
    """
    transforms, own = split_off(transforms)
    images, mix = _split_off_mix(transforms)
    if isinstance(images, list) and images and isinstance(images[-1], Processor):
        return images[:-1], images[-1], mix, own
    return images, None, mix, own


def _split_off_mix(transforms: Iterable[Any]) -> tuple[Any, BatchTransform | None]:
    if isinstance(transforms, BatchTransform):
        raise TypeError(f"transforms must be a list of transforms; try [{type(transforms).__name__}(…)]")
    if not hasattr(transforms, "__iter__"):
        return transforms, None
    listed = list(transforms)
    for place, transform in enumerate(listed[:-1]):
        if not isinstance(transform, BatchTransform):
            continue
        if isinstance(listed[-1], BatchTransform):
            raise InvalidArgumentError(
                f"transforms[{place}] is {transform!r:.80}, and a batch can be mixed once; "
                "try stoker.RandomChoice([…])"
            )
        raise InvalidArgumentError(
            f"transforms[{place}] is {transform!r:.80}, which mixes whole batches; it must be the last one"
        )
    if listed and isinstance(listed[-1], BatchTransform):
        return listed[:-1], listed[-1]
    return listed, None
