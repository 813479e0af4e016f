"""Words for anything: whatever its own ``repr`` does, a report about it can be written.

What is under test may be hostile, broken or huge, and so may be what it sends.
"""

from typing import Final

__all__ = ("shown",)

LONGEST: Final = 200


def shown(value: object, longest: int = LONGEST) -> str:
    """``repr(value)`` in at most *longest* characters; if that raises, what it is instead."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__}, whose repr() raises {type(error).__name__}>"
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
