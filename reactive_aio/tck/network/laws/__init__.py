"""The laws of the wire, each in the module of its theme; a new one is found by being there."""

from typing import Final

from ...rules import in_order
from ..law import WireLaw
from . import bounds, channels, connection, requester, responder

__all__ = ("WIRE_LAWS",)

WIRE_LAWS: Final[dict[str, WireLaw]] = {
    law.name: law
    for law in sorted(
        (
            each
            for module in (connection, responder, channels, bounds, requester)
            for each in vars(module).values()
            if isinstance(each, WireLaw)
        ),
        key=lambda law: (in_order(law.rule), law.name),
    )
}
"""Every law of the wire, by its name."""
