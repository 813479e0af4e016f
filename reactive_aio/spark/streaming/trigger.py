"""When a streaming query looks for new data."""

from typing import Any, Final, Literal, cast

from ..._core.duration import Duration, to_seconds

__all__ = ("Trigger", "trigger_options")

Trigger = Duration | Literal["available_now", "once"] | None
"""None: as soon as there is demand; a duration: at most that often; or until all is read."""

_SPARK_NAMES: Final = {"available_now": "availableNow", "once": "once"}


def trigger_options(name: str, trigger: Trigger) -> dict[str, Any]:
    """Return the arguments for ``DataStreamWriter.trigger``; none for its default."""
    if trigger is None:
        return {}
    if isinstance(trigger, str):
        spark_name = _SPARK_NAMES.get(cast("str", trigger))
        if spark_name is None:
            raise ValueError(
                f"{name}: trigger must be a duration, 'available_now', 'once' or None, not "
                f"{trigger!r}"
            )
        return {spark_name: True}
    milliseconds = to_seconds(trigger, f"{name}: trigger") * 1000
    return {"processingTime": f"{milliseconds:.0f} milliseconds"}
