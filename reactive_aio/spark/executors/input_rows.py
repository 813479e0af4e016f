"""The rows of a partition as the source of a flow, on the loop of the worker."""

from typing import TYPE_CHECKING, Any, Final

from ...errors import AlreadySubscribed
from ...stage import Downstream, from_push
from ..stepping import RowSubscription

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...flow import Flow
    from ..rows import Decoded

NAME: Final = "the rows of a partition"


class InputRows:
    """The source of a partition's flow: it has one subscription, for the rows are read once.

    *holds* is how many rows of a record batch wait for demand at most.
    """

    def __init__(self, read: "Callable[[Any], Decoded]", *, holds: int | None) -> None:
        self._read = read
        self.on_wanted: Callable[[], object] = _ignore
        """Called when the next record batch is wanted."""
        self._subscription: RowSubscription | None = None
        self.flow: Flow[Any] = from_push(self._open, name=NAME, holds=holds, checked=True)

    def _open(self, downstream: Downstream[Any]) -> RowSubscription:
        if self._subscription is not None:
            raise AlreadySubscribed(
                "rule 1.11: the rows of a partition can be read once, and are read already. "
                "Instead of the whole flow, retry the work on an element: map_async(…, retry=…). "
                "To use the rows twice, share() them."
            )
        self._subscription = RowSubscription(downstream, NAME, lambda: self.on_wanted())
        return self._subscription

    @property
    def is_wanted(self) -> bool:
        """Whether a row of the next record batch is requested; `feed` is the answer."""
        return self._subscription is not None and self._subscription.is_wanting

    def feed(self, batch: Any) -> None:
        """Take the next record batch; None at the end of the partition."""
        assert self._subscription is not None, "it has wanted one"
        if batch is None:
            self._subscription.end()
        else:
            self._subscription.feed(self._read(batch))


def _ignore() -> None:
    """The flow has not been subscribed to."""
