"""The table of docs/errors.md: what each kind of error leads to, wherever a function raises it.

    python -m tests.contract.error_table        # runs every case, and writes the table

A test fails if the page is out of date.
"""

# pyright: reportUnknownLambdaType=false

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import reactive_aio as r
from reactive_aio.testing import SubscriberProbe
from tests.contract.outcomes import (
    NOTHING,
    Consume,
    Outcome,
    first,
    iterate,
    observe,
    subscribe,
)

PAGE: Final = Path(__file__).parents[2] / "docs" / "errors.md"
BEGIN: Final = "<!-- errors: written by `python -m tests.contract.error_table` -->"
END: Final = "<!-- end of the errors -->"


class OwnError(BaseException):
    """An exception that is not an Exception."""


Raise = Callable[[], BaseException]
KINDS: Final[Mapping[str, Raise]] = {
    "`Exception`": lambda: ValueError("wrong"),
    "`BaseExceptionGroup`": lambda: BaseExceptionGroup("several", [OwnError()]),
    "own `BaseException`": OwnError,
    "own `CancelledError`": asyncio.CancelledError,
    "`GeneratorExit`": GeneratorExit,
    "`KeyboardInterrupt`": KeyboardInterrupt,
    "`StopIteration`": StopIteration,
}


@dataclass(eq=False)
class Elements:
    """Elements that can be iterated in both ways; the iteration may raise, then or at its end."""

    error: Raise
    fails: bool = False
    fails_at_end: bool = False
    opened: int = 0
    closed: int = 0

    def __iter__(self) -> Iterator[int]:
        self.opened += 1
        try:
            yield 1
            if self.fails:
                raise self.error()
            yield from range(2, 1000)
        finally:
            self.closed += 1
            if self.fails_at_end:
                raise self.error()

    async def __aiter__(self) -> AsyncIterator[int]:
        self.opened += 1
        try:
            yield 1
            await asyncio.sleep(0)
            if self.fails:
                raise self.error()
            for number in range(2, 1000):
                yield number
        finally:
            self.closed += 1
            if self.fails_at_end:
                raise self.error()


@dataclass(eq=False)
class Case:
    """A consumer of a flow in which a function raises."""

    consume: Consume
    flow: Callable[[], Any]
    source: Elements


@dataclass
class Functions:
    """What raises *error* in the cases, and the cases."""

    error: Raise
    cases: dict[tuple[str, str], Case] = field(default_factory=dict[tuple[str, str], Case])

    def fails(self, *_: object) -> Any:
        raise self.error()

    def fails_at_2(self, x: int) -> int:
        return self.fails() if x == 2 else x

    async def fails_at_2_async(self, x: int) -> int:
        await asyncio.sleep(0)
        return self.fails_at_2(x)

    def emits(self, to: Any) -> None:
        to.try_emit(1)
        self.fails()

    async def emits_async(self, to: Any) -> None:
        await to.emit(1)
        self.fails()

    def add(
        self,
        place: str,
        subscription: str,
        make: Callable[[Elements], Any],
        consume: Consume = subscribe,
        source: Elements | None = None,
    ) -> None:
        elements = source or Elements(self.error)
        self.cases[place, subscription] = Case(consume, lambda: make(elements), elements)


SYNC, TASK, PUSHED, COORDINATOR = "sync", "task", "pushed", "coordinator"
FOR, FIRST = "`async for`", "`await first()`"


def cases(error: Raise) -> dict[tuple[str, str], Case]:
    """Every case, by the place of the function and the subscription that calls it."""
    f = Functions(error)
    of, aiter_of, never = r.from_iterable, r.from_aiter, r.never()

    def raising(*, at_end: bool = False) -> Elements:
        return Elements(error, fails=not at_end, fails_at_end=at_end)

    def in_every_way(
        place: str,
        apply: Callable[[r.Flow[int]], Any],
        coordinator: Callable[[Elements], Any],
        source: Callable[[], Elements | None] = lambda: None,
    ) -> None:
        f.add(place, SYNC, lambda s: apply(of(s)), source=source())
        f.add(place, TASK, lambda s: apply(aiter_of(s)), source=source())
        f.add(place, PUSHED, lambda s: apply(of(s).boundary(2)), source=source())
        f.add(place, COORDINATOR, coordinator, source=source())
        f.add(place, FOR, lambda s: apply(of(s)), iterate, source())

    in_every_way("source", lambda up: up, lambda s: aiter_of(s).merge_with(never), raising)
    in_every_way(
        "mapper",
        lambda up: up.map(f.fails_at_2),
        lambda s: of(s).flat_map(lambda x: [f.fails_at_2(x)]),
    )
    in_every_way(
        "predicate",
        lambda up: up.filter(f.fails_at_2),
        lambda s: of(s).map(lambda _: 1 // 0).retry(r.RetryPolicy(only=f.fails)),
    )
    f.add("emitter", PUSHED, lambda _: r.create(f.emits))
    f.add("emitter", TASK, lambda _: r.create(f.emits_async))
    f.add("emitter", COORDINATOR, lambda _: r.create(f.emits).merge_with(never))
    f.add("emitter", FOR, lambda _: r.create(f.emits_async), iterate)
    f.add("thread", PUSHED, r.from_thread, source=raising())
    f.add("thread", COORDINATOR, lambda s: r.from_thread(s).merge_with(never), source=raising())
    f.add("thread", FOR, r.from_thread, iterate, raising())
    f.add("call on a thread", COORDINATOR, lambda s: of(s).map_in_thread(f.fails_at_2))
    f.add("call on a thread", FOR, lambda s: of(s).map_in_thread(f.fails_at_2), iterate)
    f.add("worker", TASK, lambda s: of(s).map_async(f.fails_at_2_async))
    f.add("worker", COORDINATOR, lambda s: of(s).map_async(f.fails_at_2_async, concurrency=3))
    f.add("worker", FOR, lambda s: of(s).map_async(f.fails_at_2_async, concurrency=3), iterate)
    in_every_way(
        "finalizer",
        lambda up: up.take(1),
        lambda s: aiter_of(s).merge_with(never, prefetch=1).take(1),
        lambda: raising(at_end=True),
    )
    f.add("finalizer", FIRST, aiter_of, first, raising(at_end=True))
    add_subscribers(f)
    add_resources(f)
    return f.cases


def add_subscribers(f: Functions) -> None:
    class Subscriber(SubscriberProbe[Any]):
        def on_next(self, element: Any, /) -> None:
            f.fails()

    async def receive(flow: Any, outcome: Outcome) -> None:
        probe = Subscriber(10)
        outcome.probe = probe
        probe.subscribed_to(flow)
        await asyncio.sleep(0.01)

    async def leave(flow: Any, outcome: Outcome) -> None:
        async def body() -> AsyncIterator[None]:
            async for _ in flow:
                f.fails()
                yield

        await iterate(body(), outcome)

    of = r.from_iterable
    f.add("subscriber", SYNC, of, receive)
    f.add("subscriber", TASK, r.from_aiter, receive)
    f.add("subscriber", PUSHED, lambda s: of(s).boundary(2), receive)
    f.add("subscriber", COORDINATOR, lambda s: of(s).flat_map(lambda x: [x]), receive)
    f.add("subscriber", FOR, of, leave)


def add_resources(f: Functions) -> None:
    class Manager:
        def __init__(self, fails: str) -> None:
            self.fails_to = fails

        def __enter__(self) -> int:
            return f.fails() if self.fails_to == "enter" else 1

        def __exit__(self, *_: object) -> None:
            if self.fails_to == "exit":
                f.fails()

        async def __aenter__(self) -> int:
            return self.__enter__()

        async def __aexit__(self, *_: object) -> None:
            self.__exit__()

    class PlainManager(contextlib.AbstractContextManager[int]):
        def __init__(self, fails: str) -> None:
            self.manager = Manager(fails)

        def __enter__(self) -> int:
            return self.manager.__enter__()

        def __exit__(self, *_: object) -> None:
            self.manager.__exit__()

    def using(kind: Any, fails: str) -> Callable[[Elements], Any]:
        return lambda s: r.using(lambda: kind(fails), lambda _: r.from_iterable(s))

    for step in ("enter", "exit"):
        place = f"resource: {step}"
        f.add(place, COORDINATOR, using(PlainManager, step))
        f.add(place, TASK, using(Manager, step))
        f.add(place, FOR, using(PlainManager, step), iterate)


# -- running them ----------------------------------------------------------------------------------
def outcomes(
    make_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
) -> dict[tuple[str, str], list[str]]:
    """The cells of the table: one for each kind of error."""
    cells: dict[tuple[str, str], list[str]] = {}
    for error in KINDS.values():
        for key, case in cases(error).items():
            outcome = observe(case.consume, case.flow, make_loop)
            cells.setdefault(key, []).append(cell(outcome, case, type(error())))
    return cells


def cell(outcome: Outcome, case: Case, raised: type[BaseException]) -> str:
    end = outcome.end
    if end is None:
        text = "completes"
    elif isinstance(end, str):
        text = "cancelled" if end == NOTHING else end
    else:
        text = "itself" if type(end) is raised else f"`{type(end).__name__}`"
    notes = [text]
    notes += ["reported"] * bool(outcome.reported)
    notes += ["stops"] * outcome.stops
    notes += ["**source open**"] * (case.source.closed != case.source.opened)
    return ", ".join(notes)


# -- the page --------------------------------------------------------------------------------------
def table(cells: Mapping[tuple[str, str], list[str]]) -> str:
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


def with_table(page: str, cells: Mapping[tuple[str, str], list[str]]) -> str:
    """*page* with the table between its markers."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table(cells)}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text("utf-8"), outcomes()), "utf-8")
