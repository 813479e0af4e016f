"""The laws of the wire, one module for each topic. A law is registered by being defined in one."""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from ...law import Law
from ...rules import rule_order


def _found() -> Iterator[Law]:
    for module in iter_modules(__path__):
        members = vars(import_module(f"{__name__}.{module.name}")).values()
        yield from (each for each in members if isinstance(each, Law))


WIRE_LAWS: Final[dict[str, Law]] = {
    law.name: law for law in sorted(_found(), key=lambda law: (rule_order(law.rule), law.name))
}
"""Every law of the wire, by its name."""
