"""show: the picture of a running flow in a notebook, drawn again while it runs."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio

from ...stage import Duration, to_seconds
from ..background import in_background
from .pictures import draw

if TYPE_CHECKING:
    from ...stage import Fluent

__all__ = ("show",)

_ELSEWHERE = (
    "show: there is no notebook to draw in; observe.inspector() has the same picture as a page, "
    "and flow.graph().svg() as a file"
)


@asynccontextmanager
async def show(flow: "Fluent[Any]", *, every: Duration = 0.5) -> AsyncGenerator[None]:
    """Show the picture of *flow* in a cell of a notebook, and its figures while the block runs.

    ::

        async with observe.show(orders):
            await orders.run()

    It is the picture of ``flow.graph()``, drawn again after each time of *every*. What was drawn
    last stays when the block has ended. The flow needs a name, as figures do:
    ``flow.name("orders")``.
    """
    seconds = to_seconds(every, "show: every")
    picture = draw(flow)
    if picture.running is None:
        raise ValueError('show: the flow has no name; give it one with name("...")')
    cell = _displayed(picture)
    async with in_background(_update, flow, cell, seconds):
        yield


def _displayed(picture: object) -> Any:
    """What updates *picture* in the cell that runs."""
    try:
        from IPython.core.getipython import get_ipython
        from IPython.display import display  # pyright: ignore[reportUnknownVariableType]
    except ImportError as error:
        raise RuntimeError(_ELSEWHERE) from error
    if getattr(get_ipython(), "kernel", None) is None:  # a terminal shows no pictures
        raise RuntimeError(_ELSEWHERE)
    untyped: Any = display  # pyright: ignore[reportUnknownVariableType]
    return untyped(picture, display_id=True)


async def _update(flow: "Fluent[Any]", cell: Any, seconds: float) -> None:
    while True:
        await anyio.sleep(seconds)
        cell.update(draw(flow))
