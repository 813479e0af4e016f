"""The errors of deliveries."""

from collections.abc import Mapping
from typing import cast

from ..errors import ReactiveError

__all__ = ("AlreadySettled", "BatchFailed", "Unfinished")


class AlreadySettled(ReactiveError, RuntimeError):
    """A second ``ack()`` or ``nack()`` of one delivery; the first one holds."""

    def __init__(self, call: str, first: str) -> None:
        super().__init__(
            f"{call}: the delivery {first}; call ack() or nack() once, while its flow runs"
        )


class BatchFailed(ReactiveError):
    """The work on some elements of a list has failed, and on the others it is done.

    Raised by the function that works on the list. *errors* are by the position in the list: an
    element with an error is nacked with it. Each other one is acknowledged if that function is the
    last one, that of ``ack_after``; otherwise it is nacked as well, with `Unfinished`, and that
    does not count as an attempt of its own.
    """

    def __init__(self, errors: Mapping[int, Exception]) -> None:
        for position, error in cast("Mapping[object, object]", errors).items():
            if isinstance(position, bool) or not isinstance(position, int) or position < 0:
                raise TypeError(
                    f"BatchFailed: a position in the list is an int from 0, not {position!r}"
                )
            if not isinstance(error, Exception):
                raise TypeError(f"BatchFailed: an error is an Exception, not {error!r}")
        if not errors:
            raise ValueError("BatchFailed: errors is empty; return where no element has failed")
        count = len(errors)
        super().__init__(
            f"the work on {count} element{'' if count == 1 else 's'} of a list failed: "
            + ", ".join(f"{position}: {error!r}" for position, error in sorted(errors.items())[:5])
        )
        self.errors: Mapping[int, Exception] = dict(errors)


class Unfinished(ReactiveError):
    """The work on an element is not done, for no reason of its own: the element is nacked with it.

    The flow has ended before, or another element of its list has failed.
    """
