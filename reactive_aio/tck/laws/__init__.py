"""The laws, each in the module of its theme; a new one is found by being there."""

from collections.abc import Iterator
from types import ModuleType
from typing import Final

from ..law import Law
from ..rules import in_order
from . import (
    black_box,
    cancellation,
    demand,
    depth,
    forgetting,
    house,
    processor,
    promptness,
    raising,
    setup,
    signals,
    subscribing,
    white_box,
)

__all__ = ("BLACK_BOX", "LAWS", "PROCESSOR", "PUBLISHER", "WHITE_BOX")


def _of(*modules: ModuleType) -> tuple[Law, ...]:
    def found() -> Iterator[Law]:
        for module in modules:
            yield from (each for each in vars(module).values() if isinstance(each, Law))

    return tuple(sorted(found(), key=lambda law: (in_order(law.rule), law.name)))


PUBLISHER: Final = _of(
    cancellation,
    demand,
    depth,
    forgetting,
    house,
    promptness,
    raising,
    setup,
    signals,
    subscribing,
)
"""Laws for publishers."""

BLACK_BOX: Final = _of(black_box)
"""Laws for subscribers of which no more is seen than what they request."""

WHITE_BOX: Final = _of(white_box)
"""Laws for subscribers that tell a probe what they receive."""

PROCESSOR: Final = _of(processor)
"""Laws for processors, besides those of a publisher and of a white-box subscriber."""

LAWS: Final = {law.name: law for law in (*PUBLISHER, *BLACK_BOX, *WHITE_BOX, *PROCESSOR)}
"""Every law, by its name."""
