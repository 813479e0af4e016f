"""Random flows of deliveries: any order, failures, cancellations and crashes.

A value inside a flow is a leaf, which knows its element and which parts of it were taken, or a list
of values. A model says which leaves of an element are written if all goes well. A crash can come at
any moment, so the test looks at each acknowledgement and each commit when it is called: all leaves
of the element must have been written then, or the element buried.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import given, strategies as st

import reactive_aio as r
from reactive_aio import DrainReport, RetryPolicy
from reactive_aio.delivery import BatchFailed, Delivery, DeliveryFlow, deliveries, log_deliveries
from tests.operators.ways import Failed

pytestmark = pytest.mark.virtual_time

ATTEMPTS: Final = 3


class Leaf(NamedTuple):
    """A part of an element."""

    element: int
    path: tuple[int, ...] = ()

    def draw(self, salt: int, sides: int) -> int:
        """A number below *sides*, the same for the same leaf."""
        return hash((*self, salt)) % sides


OPERATORS: Final = (
    "map",
    "filter",
    "map_async",
    "map_async: unordered",
    "map_async: by key",
    "flat_map",
    "flat_map: asynchronous",
    "buffer",
    "buffer_timeout",
)


@dataclass(frozen=True)
class Program:
    """A flow, and what happens to it."""

    length: int
    operators: tuple[str, ...]
    failures: dict[int, int]
    """How often the work on an element fails."""
    fails_in_write: bool
    """Whether the last function fails as well, for some elements of its list."""
    has_policy: bool
    has_dead_letter: bool
    limit: int
    concurrency: int
    ack_concurrency: int
    ack_seconds: int
    cancel_after: int | None
    """How many seconds the consumer waits, if it does not wait for the end."""
    cut: int | None
    """After how many elements the source fails, if it does."""


PROGRAMS: Final = st.builds(
    Program,
    length=st.integers(0, 12),
    operators=st.lists(st.sampled_from(OPERATORS), max_size=3).map(tuple),
    failures=st.dictionaries(st.integers(0, 11), st.integers(1, 4), max_size=3),
    fails_in_write=st.booleans(),
    has_policy=st.booleans(),
    has_dead_letter=st.booleans(),
    limit=st.integers(1, 8),
    concurrency=st.integers(1, 4),
    ack_concurrency=st.integers(1, 3),
    ack_seconds=st.integers(0, 2),
    cancel_after=st.none() | st.integers(0, 20),
    cut=st.none() | st.integers(0, 12),
)


def leaves(value: Any) -> list[Leaf]:
    return [value] if isinstance(value, Leaf) else [leaf for each in value for leaf in leaves(each)]


def parts(value: Any) -> list[Any]:
    """The parts that flat_map makes: of a leaf none to three, of a list its members."""
    if not isinstance(value, Leaf):
        return [*value]
    return [Leaf(value.element, (*value.path, i)) for i in range(value.draw(1, 4))]


def passes(value: Any) -> bool:
    return not isinstance(value, Leaf) or value.draw(2, 3) > 0


def model(element: int, operators: tuple[str, ...]) -> set[Leaf]:
    """The leaves of an element that are written."""
    values, depth = [Leaf(element)], 0
    for name in operators:
        if name == "filter" and not depth:
            values = [value for value in values if passes(value)]
        elif name.startswith("flat_map"):
            if not depth:
                values = [part for value in values for part in parts(value)]
            depth = max(depth - 1, 0)
        elif name.startswith("buffer"):
            depth += 1
    return set(values)


class Run:
    """One run of a program, and what its source was called with."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.written: set[Leaf] = set()
        self.buried: set[int] = set()
        self.sent: list[int] = []
        self.acked: list[int] = []
        self.nacked: list[int] = []
        self.committed: dict[int, int] = {}
        self.settled_in_time = 0
        self.committed_in_time: dict[int, int] = {}
        self._failed: Counter[int] = Counter()

    # -- the source -------------------------------------------------------------------------------
    def is_done(self, element: int) -> bool:
        return element in self.buried or model(element, self.program.operators) <= self.written

    async def ack(self, element: int) -> None:
        assert self.is_done(element), f"{element} is acknowledged, and not done"
        await asyncio.sleep(self.program.ack_seconds)
        assert element not in (*self.acked, *self.nacked)
        self.acked.append(element)

    async def ack_many(self, elements: list[int]) -> None:
        assert elements
        assert all(map(self.is_done, elements)), "some are acknowledged, and not done"
        await asyncio.sleep(self.program.ack_seconds)
        assert not {*elements} & {*self.acked, *self.nacked}
        self.acked += elements

    async def nack(self, element: int, error: Exception) -> None:
        await asyncio.sleep(self.program.ack_seconds)
        assert element not in (*self.acked, *self.nacked)
        self.nacked.append(element)

    async def commit(self, positions: dict[int, int]) -> None:
        for partition, position in positions.items():
            assert position > self.committed.get(partition, -1), "a commit goes back"
            for element in range(partition, position + 1, 2):
                assert self.is_done(element), f"{element} is committed, and not done"
        await asyncio.sleep(self.program.ack_seconds)
        self.committed |= positions

    def source(self) -> r.Flow[int]:
        numbers = r.range(self.program.length).do_on_next(self.sent.append)
        if self.program.cut is None:
            return numbers
        return numbers.take(self.program.cut).concat_with(r.error(Failed("of the source")))

    def of_log(self, elements: r.Flow[int], every: int) -> DeliveryFlow[int]:
        return log_deliveries(
            elements,
            self.commit,
            position=int,
            partition=lambda x: x % 2,
            every=every,
            within=3,
            limit=self.program.limit,
        )

    def delivery(self, element: int) -> Delivery[int]:
        return Delivery(element, lambda: self.ack(element), lambda error: self.nack(element, error))

    # -- the work ---------------------------------------------------------------------------------
    def work(self, value: Any) -> Any:
        """Fail for the elements that still have to."""
        if (error := self.error(value)) is not None:
            raise error
        return value

    def error(self, value: Any) -> Exception | None:
        """The error of the elements of a value that still have to fail."""
        errors: dict[int, Exception] = {}
        for position, member in enumerate([value] if isinstance(value, Leaf) else value):
            elements = {leaf.element for leaf in leaves(member)}
            failing = {x for x in elements if self._failed[x] < self.program.failures.get(x, 0)}
            self._failed.update(failing)
            if failing:
                errors[position] = Failed(*failing)
        if not errors:
            return None
        return errors[0] if isinstance(value, Leaf) else BatchFailed(errors)

    async def work_async(self, value: Any) -> Any:
        await asyncio.sleep(sum(leaf.draw(3, 4) for leaf in leaves(value)))
        return self.work(value)

    async def parts_async(self, value: Any) -> AsyncIterator[Any]:
        for part in parts(value):
            await asyncio.sleep(1)
            yield part

    async def write(self, value: Any) -> None:
        await asyncio.sleep(sum(leaf.draw(4, 3) for leaf in leaves(value)))
        error = self.error(value) if self.program.fails_in_write else None
        if isinstance(error, BatchFailed):
            done = [each for at, each in enumerate(value) if at not in error.errors]
            self.written.update(leaves(done))
        if error is not None:
            raise error
        self.written.update(leaves(value))

    async def bury(self, element: int, error: Exception) -> None:
        await asyncio.sleep(1)
        self.buried.add(element)

    # -- the flow ---------------------------------------------------------------------------------
    def attach(self, flow: DeliveryFlow[Any], name: str) -> DeliveryFlow[Any]:
        n = self.program.concurrency
        match name:
            case "map":
                return flow.map(self.work)
            case "filter":
                return flow.filter(passes)
            case "map_async":
                return flow.map_async(self.work_async, concurrency=n)
            case "map_async: unordered":
                return flow.map_async(self.work_async, concurrency=n, ordered=False)
            case "map_async: by key":
                return flow.map_async(self.work_async, concurrency=n, key=lambda x: len(leaves(x)))
            case "flat_map":
                return flow.flat_map(lambda x: iter(parts(x)), concurrency=n, prefetch=n)
            case "flat_map: asynchronous":
                return flow.flat_map(self.parts_async, concurrency=n, prefetch=n)
            case "buffer":
                return flow.buffer(3)
            case _:
                return flow.buffer_timeout(3, 2)

    def flow(self, started: DeliveryFlow[int]) -> r.Flow[Any]:
        program = self.program
        flow: DeliveryFlow[Any] = started
        if program.has_policy:
            policy = RetryPolicy(attempts=ATTEMPTS, delay=1)
            flow = flow.nack_on_error(
                policy, dead_letter=self.bury if program.has_dead_letter else None
            )
        flow = flow.map(Leaf)
        for name in program.operators:
            flow = self.attach(flow, name)
        return flow.ack_after(self.write, concurrency=program.concurrency)

    async def run(self, started: DeliveryFlow[int]) -> bool:
        """Whether the flow has completed."""
        try:
            await asyncio.wait_for(self.flow(started).run(), self.program.cancel_after)
        except TimeoutError:
            return False
        except (Failed, BatchFailed, ExceptionGroup):
            return False
        finally:
            await asyncio.sleep(100)  # what was given back when the flow failed
        return True

    async def drain(self, started: DeliveryFlow[int], seconds: int) -> DrainReport | None:
        """The report of a drain that begins after a while; None if the flow has failed."""
        try:
            async with self.flow(started).running() as run:
                await asyncio.sleep(self.program.cancel_after or 3)
                report = await run.drain(timeout=seconds)
                # What takes longer goes on behind the report, which says what it waits for.
                self.settled_in_time = len(self.acked) + len(self.nacked)
                self.committed_in_time = {**self.committed}
                return report
        except (Failed, BatchFailed, ExceptionGroup):
            return None
        finally:
            await asyncio.sleep(100)

    async def check_settled(self, started: DeliveryFlow[int]) -> None:
        """Run it: each element is settled once, and acknowledged where the flow completes."""
        completed = await self.run(started)
        assert sorted([*self.acked, *self.nacked]) == self.sent
        if completed:
            assert sorted(self.acked) == [*range(self.program.length)]
        elif self.program.cancel_after is None:
            assert self.may_fail()

    def may_fail(self) -> bool:
        """Whether an error can reach the consumer."""
        failures = self.program.failures
        return self.program.cut is not None or bool(
            failures and not (self.program.has_policy and self.program.has_dead_letter)
        )


@pytest.fixture(autouse=True)
def only_further_failures(expects_loop_errors: list[dict[str, Any]]) -> Iterator[None]:
    """Calls that fail beside the one whose error is raised are reported; nothing else is."""
    yield
    assert {each["message"] for each in expects_loop_errors} <= {"another call failed as well"}


@given(PROGRAMS)
async def test_each_element_is_settled_once_and_none_before_its_work_is_done(
    program: Program,
) -> None:
    run = Run(program)
    flow = deliveries(
        run.source(),
        run.ack,
        run.nack,
        limit=program.limit,
        ack_concurrency=program.ack_concurrency,
    )
    await run.check_settled(flow)


@given(PROGRAMS)
async def test_the_same_where_several_are_acknowledged_with_one_call(program: Program) -> None:
    run = Run(program)
    flow = deliveries(run.source(), ack_many=run.ack_many, nack=run.nack, limit=program.limit)
    await run.check_settled(flow)


@given(PROGRAMS)
async def test_deliveries_that_the_source_holds_are_settled_as_well(program: Program) -> None:
    run = Run(program)
    flow = deliveries(run.source().map(run.delivery).boundary(3), limit=program.limit)
    completed = await run.run(flow)
    assert sorted([*run.acked, *run.nacked]) == run.sent
    assert completed <= (not run.nacked)


@given(PROGRAMS)
async def test_no_position_is_committed_before_all_elements_up_to_it_are_done(
    program: Program,
) -> None:
    run = Run(program)
    flow = run.of_log(run.source(), program.ack_concurrency)
    if await run.run(flow):
        last = {x % 2: x for x in range(program.length)}
        assert run.committed == last
    elif program.cancel_after is None:
        assert run.may_fail()


@given(PROGRAMS)
async def test_after_a_crash_the_rest_of_a_log_is_read_until_all_is_done(program: Program) -> None:
    """Each run continues after the committed positions, as another process would."""
    run = Run(program)
    for _ in range(3 * program.length + 9):
        first = [run.committed.get(partition, partition - 2) + 2 for partition in range(2)]
        rest = [x for x in range(program.length) if x >= first[x % 2]]
        if not rest:
            break
        await run.run(run.of_log(r.from_iterable(rest), every=1))
        if program.cancel_after is not None:
            # A run that is too short for a single element would be repeated for ever.
            longer = 2 * program.cancel_after + 9
            program = run.program = replace(program, cancel_after=longer)
    assert run.committed == {x % 2: x for x in range(program.length)}
    assert all(map(run.is_done, range(program.length)))


@given(PROGRAMS, st.integers(0, 9), st.booleans())
async def test_a_drain_reports_each_delivery_that_was_not_settled(
    program: Program, seconds: int, takes_back: bool
) -> None:
    run = Run(program)
    flow = deliveries(run.source(), run.ack, run.nack if takes_back else None, limit=program.limit)
    report = await run.drain(flow, seconds)
    if report is not None:
        assert report.unacknowledged == len(run.sent) - run.settled_in_time
        if report.is_complete or (takes_back and not report.waits_for):
            assert report.unacknowledged == 0


@given(PROGRAMS, st.integers(0, 9))
async def test_a_drain_of_a_log_reports_what_is_not_committed(
    program: Program, seconds: int
) -> None:
    run = Run(program)
    flow = run.of_log(run.source(), program.ack_concurrency)
    report = await run.drain(flow, seconds)
    if report is not None:
        uncommitted = [x for x in run.sent if x > run.committed_in_time.get(x % 2, -1)]
        assert report.unacknowledged == len(uncommitted)
