"""The laws, one module for each topic. A law is registered by being defined in one of them."""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Final, cast

from ..law import Law
from ..rules import rule_order


def _found() -> Iterator[Law]:
    for module in iter_modules(__path__):
        members: dict[str, object] = vars(import_module(f"{__name__}.{module.name}"))
        for member in members.values():
            # A decorator may make several laws of one scenario.
            made = cast("tuple[object, ...]", member) if isinstance(member, tuple) else (member,)
            yield from (each for each in made if isinstance(each, Law))


_ALL: Final = sorted(_found(), key=lambda law: (rule_order(law.rule), law.name))


def _judging(*factories: str) -> tuple[Law, ...]:
    return tuple(law for law in _ALL if law.needs[0] in factories)


PUBLISHER: Final = _judging(
    "publisher", "failing_publisher", "infinite_publisher", "closing_publisher"
)
"""Laws for publishers."""

BLACK_BOX: Final = _judging("subscriber")
"""Laws for subscribers of which only the requests are observed."""

WHITE_BOX: Final = _judging("whitebox_subscriber")
"""Laws for subscribers that report their signals to a probe."""

PROCESSOR: Final = _judging("processor")
"""Laws for processors, in addition to those of a publisher and of a white-box subscriber."""

LAWS: Final = {law.name: law for law in (*PUBLISHER, *BLACK_BOX, *WHITE_BOX, *PROCESSOR)}
"""Every law, by its name."""
