"""The table of docs/errors.md: what each kind of error leads to, wherever a function raises it.

    python -m tests.contract.raising        # runs every row, and writes the table

A test fails if the page is out of date.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from reactive_aio.testing import SubscriberProbe
from tests.contract.raising.consumers import first, iterate, subscribe
from tests.contract.raising.kinds import KINDS, Kind
from tests.contract.raising.observe import NOTHING, Consume, MakeLoop, Outcome, observe
from tests.contract.raising.places import CLEANUPS, FLOWS, PLACES, Place
from tests.contract.subscribers import turns

PAGE: Final = Path(__file__).parents[3] / "docs" / "errors.md"
BEGIN: Final = "<!-- errors: written by `python -m tests.contract.raising` -->"
END: Final = "<!-- end of the errors -->"

Cells = Mapping[tuple[str, str], list[str]]
"""The cells of each row, by the place and the subscription: one for each kind of error."""

FOR, FIRST = "`async for`", "`await first()`"
SUBSCRIPTIONS: Final = ("sync", "task", "pushed", "coordinator", FOR, FIRST)
# fmt: off
ROWS: Final[Mapping[str, tuple[str, ...]]] = {
    "source": ("iterable", "asynchronous", "boundary", "merge", "iterable"),
    "mapper": ("map of iterable", "map of asynchronous", "map of boundary", "flat_map: mapper",
               "map of iterable"),
    "predicate": ("filter of iterable", "filter of asynchronous", "filter of boundary", "retry",
                  "filter of iterable"),
    "emitter": ("", "create: coroutine", "create", "create, merged", "create: coroutine"),
    "thread": ("", "", "thread", "thread, merged", "thread"),
    "call on a thread": ("", "", "", "map_in_thread", "map_in_thread"),
    "worker": ("", "map_async", "", "map_async: workers", "map_async: workers"),
    "finalizer": ("iterable", "asynchronous", "boundary", "merge", "iterable", "asynchronous"),
    "subscriber": ("iterable", "asynchronous", "boundary", "flat_map", "iterable"),
    "resource: enter": ("", "using: async enter", "", "using: enter", "using: enter"),
    "resource: exit": ("", "using: async exit", "", "using: exit", "using: exit"),
}
# fmt: on
"""The rows of `places` that the page shows, in the order of `SUBSCRIPTIONS`."""


# -- who consumes the flow of a row ----------------------------------------------------------------
async def raise_in_on_next(flow: Any, outcome: Outcome) -> None:
    class Subscriber(SubscriberProbe[Any]):
        def on_next(self, _: Any, /) -> None:
            outcome.code.fails()

    outcome.probe = Subscriber(10)
    outcome.probe.subscribed_to(flow)
    await turns()


async def raise_in_the_body(flow: Any, outcome: Outcome) -> None:
    async for _ in flow:
        outcome.code.fails()


def row(place: str, name: str, subscription: str) -> tuple[Place, Consume]:
    """The flow of a row, and its consumer."""
    consume = {FOR: iterate, FIRST: first}.get(subscription, subscribe)
    if place == "finalizer":
        return lambda code: CLEANUPS[name](code).take(1), consume
    if place == "subscriber":
        raising = raise_in_the_body if subscription == FOR else raise_in_on_next
        return lambda code: FLOWS[name](code.numbers), raising
    return PLACES[name], consume


def cells(make_loop: MakeLoop) -> Cells:
    """The cells of the table, as a loop makes them."""
    return {
        (place, subscription): [
            cell(observe(*row(place, name, subscription), kind.make, make_loop), kind)
            for kind in KINDS.values()
        ]
        for place, names in ROWS.items()
        for subscription, name in zip(SUBSCRIPTIONS, names, strict=False)
        if name
    }


def cell(outcome: Outcome, kind: Kind) -> str:
    end = outcome.end
    if end is None:
        text = "completes"
    elif isinstance(end, str):
        text = "cancelled" if end == NOTHING else end
    else:
        text = "itself" if type(end) is type(kind.make()) else f"`{type(end).__name__}`"
    notes = [text]
    notes += ["reported"] * bool(outcome.reported)
    notes += ["stops"] * outcome.stops
    notes += ["**source open**"] * (outcome.code.closed != outcome.code.opened)
    return ", ".join(notes)


# -- the page --------------------------------------------------------------------------------------
def table(cells: Cells) -> str:
    """The table, with one row for the subscriptions of a place that do not differ."""
    merged: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (place, subscription), row in cells.items():
        merged.setdefault((place, tuple(row)), []).append(subscription)
    rows = [["raised by", "in", *KINDS]]
    rows += [[place, ", ".join(ways), *row] for (place, row), ways in merged.items()]
    return "\n".join(_lines(rows))


def _lines(rows: list[list[str]]) -> Iterable[str]:
    shown = ""
    for number, (place, *row) in enumerate(rows):
        yield f"| {' | '.join(['' if place == shown else place, *row])} |"
        shown = place
        if number == 0:
            yield "|---" * len(rows[0]) + "|"


def with_table(page: str, cells: Cells) -> str:
    """*page* with the table between its markers."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table(cells)}\n\n{END}{after}"
