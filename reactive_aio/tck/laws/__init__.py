"""The laws, one module for each topic. A law is registered by being defined in one of them."""

from typing import Final

from ..candidate import PUBLISHER_FACTORIES
from ..law import Law, laws_in

__all__ = ("BLACK_BOX", "LAWS", "PROCESSOR", "PUBLISHER", "WHITE_BOX")

_ALL: Final = laws_in(__name__, __path__)


def _judging(*factories: str) -> tuple[Law, ...]:
    return tuple(law for law in _ALL if law.needs[0] in factories)


PUBLISHER: Final = _judging(*PUBLISHER_FACTORIES)
"""Laws for publishers."""

BLACK_BOX: Final = _judging("subscriber")
"""Laws for subscribers of which only the requests are observed."""

WHITE_BOX: Final = _judging("whitebox_subscriber")
"""Laws for subscribers that report their signals to a probe."""

PROCESSOR: Final = _judging("processor")
"""Laws for processors, in addition to those of a publisher and of a white-box subscriber."""

LAWS: Final = {law.name: law for law in (*PUBLISHER, *BLACK_BOX, *WHITE_BOX, *PROCESSOR)}
"""Every law, by its name."""
