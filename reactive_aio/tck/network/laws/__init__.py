"""The laws of the wire, one module for each topic. A law is registered by being defined in one."""

from typing import Final

from ...law import Law, laws_in

__all__ = ("WIRE_LAWS",)

WIRE_LAWS: Final[dict[str, Law]] = {law.name: law for law in laws_in(__name__, __path__)}
"""Every law of the wire, by its name."""
