"""AwaitableChain: the chain of a flow of one awaitable, derived when it is needed."""

from collections.abc import Awaitable, Callable
from functools import partial
from itertools import repeat
from typing import Any, Final

from ..arguments import explain_await
from .chain import Chain, PullSource
from .inline import AppliedStage, InlineStage, describe
from .places import Place

_AWAIT: Final = InlineStage(
    "awaited",
    params=("make",),
    uses=(explain_await,),
    each="""
    try:
        x = await $make()
    except TypeError as error:
        raise explain_await("from_awaitable", "source", $make, error)
    if x is None:
        raise no_element("from_awaitable")
    last
    """,
    checked=True,
)
_DERIVED: Final = frozenset(Chain.__slots__)


class AwaitableChain(Chain):
    """Delivers the result of awaiting ``awaitable()``.

    Such a flow is often made for each element of another one, and the operator that makes it awaits
    it without subscribing: a subscription for each takes ten times as long. So it begins with the
    awaitable and the place alone; the attributes of a chain are set when one of them is read.
    """

    __slots__ = ("_awaitable", "_given")

    def __init__(
        self, given: object, awaitable: Callable[[], Awaitable[Any]], place: Place | None
    ) -> None:
        self._given = given
        self._awaitable = awaitable
        self.place: Place | None = place

    @property
    def awaitable(self) -> Callable[[], Awaitable[Any]]:
        return self._awaitable

    def __getattr__(self, name: str) -> Any:
        """Called for an attribute that is not set."""
        if name not in _DERIVED:
            raise AttributeError(name)
        make, place = self._awaitable, self.place
        source = PullSource(self._name, partial(repeat, None), checked=True)
        chain = Chain(source, place).then(AppliedStage(_AWAIT, (make,), place=place))
        for each in _DERIVED - {"place"}:
            setattr(self, each, getattr(chain, each))
        return getattr(chain, name)

    def _name(self) -> str:
        return f"from_awaitable({describe(self._given)})"
