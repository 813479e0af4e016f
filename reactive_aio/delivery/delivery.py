"""Delivery: an element that has to be acknowledged."""

from collections.abc import Callable
from typing import Final, Generic, TypeVar, cast

from .._core.arguments import OWN_TASK, refuse_awaitable, require_element
from ..errors import WrongLoop
from ..stage import require_callable, require_int
from .errors import AlreadySettled

__all__ = ("Delivery",)

T_co = TypeVar("T_co", covariant=True)

ENDED: Final = "was nacked when its flow ended"

_Functions = tuple[Callable[[], object], Callable[[Exception], object] | None]


class Delivery(Generic[T_co]):
    """An element that has to be acknowledged when its work is done: by `ack` or `nack`, once.

    A source makes one of each element that it delivers. *ack* is called when the work is done;
    *nack*, if the source can take an element back, with the reason why it was not. In the source
    of `deliveries` both may be coroutine functions. *attempt* is how often the source has
    delivered the element, if it counts that. It is for your program to read: an outage or a restart
    adds to it as well, so that it proves nothing about the element.

    The consumer of `DeliveryFlow.as_flow` receives one for each element, and calls `ack` or `nack`
    itself.
    """

    __slots__ = ("_ack", "_nack", "_outcome", "attempt", "value")

    def __init__(
        self,
        value: T_co,
        ack: Callable[[], object],
        nack: Callable[[Exception], object] | None = None,
        *,
        attempt: int = 1,
    ) -> None:
        require_element("Delivery", "value", value)
        require_callable("Delivery", "ack", ack, takes=0)
        if nack is not None:
            require_callable("Delivery", "nack", nack, takes=1)
        self.value: T_co = value
        self.attempt: int = require_int("Delivery", "attempt", attempt, least=1)
        self._ack = ack
        self._nack = nack
        self._outcome = ""

    def __repr__(self) -> str:
        return f"<Delivery {self.value!r} {self._outcome or 'is open'}>"

    @property
    def is_settled(self) -> bool:
        """Whether `ack` or `nack` was called."""
        return bool(self._outcome)

    @property
    def origin(self) -> object:
        """The part of the source that the element is from, such as a partition, or None."""
        return None

    def ack(self) -> None:
        """The work is done. A second `ack` or `nack` raises `AlreadySettled`."""
        self._settle("ack()", "was acknowledged")
        refuse_awaitable("Delivery", self._ack, self._call(self._ack), OWN_TASK)

    def nack(self, error: Exception) -> None:
        """The work is not done, because of *error*. A second call raises `AlreadySettled`."""
        if not isinstance(cast("object", error), Exception):
            raise TypeError(f"nack(error): an Exception is needed, not {error!r}")
        self._settle("nack()", "was nacked")
        if self._nack is not None:
            refuse_awaitable("Delivery", self._nack, self._call(self._nack, error), OWN_TASK)

    def take_over(self) -> _Functions:
        """A flow acknowledges it from now on: return the functions *ack* and *nack*."""
        self._settle("deliveries()", "belongs to a flow")
        return self._ack, self._nack

    def _call(self, function: Callable[..., object], *arguments: Exception) -> object:
        try:
            return function(*arguments)
        except AlreadySettled:  # by the end of the flow that it belongs to
            self._outcome = ENDED
            raise
        except WrongLoop:  # nothing was settled
            self._outcome = ""
            raise

    def _settle(self, call: str, outcome: str) -> None:
        if self._outcome:
            raise AlreadySettled(call, self._outcome)
        self._outcome = outcome
