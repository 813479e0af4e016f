"""Those who consume a flow: to its end, or until they leave it."""

from collections.abc import Mapping
from typing import Any, Final

from reactive_aio.testing import SubscriberProbe
from tests.contract.raising.observe import Consume, Outcome


async def subscribe(flow: Any, outcome: Outcome) -> None:
    """A subscriber with unbounded demand."""
    outcome.probe = SubscriberProbe[Any](10**6)
    end = (await outcome.probe.subscribed_to(flow).end())[-1]
    if isinstance(end, BaseException):
        raise end


async def to_list(flow: Any, _: Outcome) -> None:
    await flow.to_list()


async def iterate(flow: Any, _: Outcome) -> None:
    async for _ in flow:
        pass


CONSUMERS: Final[Mapping[str, Consume]] = {
    "subscribe": subscribe,
    "to_list": to_list,
    "async for": iterate,
}
"""They consume a flow to its end."""


async def first(flow: Any, _: Outcome) -> None:
    await flow.first()


async def take(flow: Any, _: Outcome) -> None:
    await flow.take(1).to_list()


async def stream(flow: Any, _: Outcome) -> None:
    async with flow.stream() as elements:
        async for _ in elements:
            break


async def aclose(flow: Any, _: Outcome) -> None:
    elements = flow.stream()
    await anext(elements)
    await elements.aclose()


async def leave(flow: Any, _: Outcome) -> None:
    async for _ in flow:
        break


async def cancel(flow: Any, _: Outcome) -> None:
    probe = SubscriberProbe[Any](1).subscribed_to(flow)
    await probe.next_element()
    probe.cancel()


AWAITING: Final[Mapping[str, Consume]] = {
    "first": first,
    "take": take,
    "stream": stream,
    "aclose": aclose,
}
"""They leave a flow after its first element, and await its cleanup."""
NOT_AWAITING: Final[Mapping[str, Consume]] = {"break": leave, "cancel": cancel}
"""They leave a flow after its first element, and await nothing."""
