"""When a streaming query looks for new data."""

from typing import Any, Final, Literal, cast

from ..._core.duration import Duration, to_seconds

__all__ = ("Trigger", "trigger_options")

Trigger = Duration | Literal["available_now", "once"] | None
"""None: as soon as there is demand; a duration: at most that often; or until all is read."""

_WORDS: Final = {"available_now": "availableNow", "once": "once"}


def trigger_options(name: str, trigger: Trigger) -> dict[str, Any]:
    """What ``DataStreamWriter.trigger`` is to be called with; nothing for its default."""
    if trigger is None:
        return {}
    if isinstance(trigger, str):
        word = _WORDS.get(cast("str", trigger))
        if word is None:
            raise ValueError(
                f"{name}: trigger must be a duration, 'available_now', 'once' or None, not "
                f"{trigger!r}"
            )
        return {word: True}
    return {"processingTime": f"{to_seconds(trigger, f'{name}: trigger') * 1000:.0f} milliseconds"}
