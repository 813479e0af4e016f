"""Every awaitable terminal and ``async for``, over any publisher, as candidates for subscribers."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from reactive_aio import Flow

__all__ = ("SINKS",)


async def iterate(flow: Flow[Any]) -> None:
    async for _ in flow:
        pass


async def iterate_stream(flow: Flow[Any]) -> None:
    async with flow.stream(prefetch=3) as elements:
        async for _ in elements:
            pass


async def later(_element: Any) -> None:
    """An ``async def`` callback."""


SINKS: Final[dict[str, Callable[[Flow[Any]], Awaitable[Any]]]] = {
    "async for": iterate,
    "stream": iterate_stream,
    "last": lambda flow: flow.last(default=None),
    "reduce": lambda flow: flow.reduce(lambda a, b: b, 0),
    "to_list": lambda flow: flow.to_list(),
    "to_dict": lambda flow: flow.to_dict(lambda x: x),
    "count": lambda flow: flow.count(),
    "any": lambda flow: flow.any(lambda _: False),
    "all": lambda flow: flow.all(lambda _: True),
    "sum": lambda flow: flow.sum(),
    "min": lambda flow: flow.min(default=None),
    "max": lambda flow: flow.max(default=None),
    "for_each": lambda flow: flow.for_each(lambda _: None),
    "for_each: async": lambda flow: flow.map_async(later).run(),
    "run": lambda flow: flow.run(),
    "first": lambda flow: flow.first(default=None),
    "single": lambda flow: flow.single(default=None),
    "element_at": lambda flow: flow.element_at(1_000_000, default=None),
}
