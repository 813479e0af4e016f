"""A ``repr`` that neither raises nor grows without limit.

The object under test may be hostile, broken or huge, and so may its elements and errors.
"""


def safe_repr(value: object, longest: int = 200) -> str:
    """``repr(value)`` in at most *longest* characters; its type if ``repr`` raises."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__}, whose repr() raises {type(error).__name__}>"
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
