"""Hot flows whose subscribers emit, subscribe, leave and end it inside their own signals.

Random programs against a model of one line: the elements have one order, and a subscriber receives
those that the flow retains when it joins, and then each following one, once.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from reactive_aio import (
    Flow,
    LatestProcessor,
    MulticastProcessor,
    ReplayProcessor,
    UnicastProcessor,
)
from reactive_aio.spec import Subscription
from tests.harness.effort import scaled

MANY = 2**63 - 1
MOST_ELEMENTS, MOST_SUBSCRIBERS = 12, 8


@dataclass
class Hot:
    """A hot flow, what emits into it, and how many elements it retains for a new subscriber."""

    flow: Flow[int]
    source: Any
    retains: int
    restarts: bool = False
    """Whether a subscriber that joins after the end starts the source afresh."""
    misses: bool = False
    """Whether a subscriber that is slow, or inside a signal, misses elements for newer ones."""


def of_processor(make: Callable[..., Any], retains: int, **options: Any) -> Callable[[], Hot]:
    def made() -> Hot:
        processor = make(**options)
        return Hot(processor, processor, retains, misses=make is LatestProcessor)

    return made


def of_operator(
    make: Callable[[Flow[int]], Flow[int]], retains: int, restarts: bool = False
) -> Callable[[], Hot]:
    def made() -> Hot:
        source = UnicastProcessor[int]()
        return Hot(make(source), source, retains, restarts)

    return made


HOT: dict[str, Callable[[], Hot]] = {
    "multicast": of_processor(MulticastProcessor, 0),
    "multicast of 2": of_processor(MulticastProcessor, 0, capacity=2),
    "replay 1": of_processor(ReplayProcessor, 1, n=1),
    "replay 3": of_processor(ReplayProcessor, 3, n=3),
    "replay all": of_processor(ReplayProcessor, 99, n=99),
    "replay 3 of 2": of_processor(ReplayProcessor, 3, n=3, capacity=2),
    "replay 2 of 1": of_processor(ReplayProcessor, 2, n=2, capacity=1),
    "latest": of_processor(LatestProcessor, 1, initial=0),
    "share": of_operator(lambda flow: flow.share(), 0, restarts=True),
    "share replay": of_operator(lambda flow: flow.share(replay=2), 2, restarts=True),
    "replay()": of_operator(lambda flow: flow.replay(3), 3),
    "replay() of 1": of_operator(lambda flow: flow.replay(3, capacity=1), 3),
    "cache": of_operator(lambda flow: flow.cache(), 99),
}


@dataclass
class Program:
    """One run: what its subscribers do inside their signals is decided by *random*."""

    hot: Hot
    random: Random
    accepted: set[int] = field(default_factory=set[int])
    emitted: int = 0
    is_ended: bool = False
    is_over: bool = False
    """Nothing is done any more, but what was emitted is received."""
    subscribers: "list[Subscriber]" = field(default_factory=list["Subscriber"])

    def act(self, actor: "Subscriber | None" = None) -> None:
        """Perhaps do something: emit, subscribe, leave, request, end."""
        while self.random.random() < 0.5 and not self.is_over:
            action = self.random.choice("eeeessslr.")
            if action == "e" and self.emitted < MOST_ELEMENTS and not self.is_ended:
                self.emit()
            elif action == "s" and len(self.subscribers) < MOST_SUBSCRIBERS:
                self.subscribe()
            elif action == "l" and actor is not None and self.random.random() < 0.3:
                actor.leave()
            elif action == "r":
                self.random.choice(self.subscribers).request(self.random.randint(1, 3))
            elif action == "." and self.random.random() < 0.1:
                self.end()

    def emit(self) -> None:
        self.emitted += 1
        element = self.emitted
        if self.hot.source.try_emit(element):
            self.accepted.add(element)

    def end(self) -> None:
        if self.hot.restarts and any(each.is_joining for each in self.subscribers):
            return
        self.is_ended = True
        self.hot.source.complete()

    def subscribe(self) -> None:
        if self.is_ended and self.hot.restarts:
            return
        made = Subscriber(self, self.random.choice([1, 2, MANY]))
        self.subscribers.append(made)
        made.known_before = len(self.witness.received)
        self.hot.flow.subscribe(made)
        made.is_joining = False
        # What has been accepted may be retained before the first subscriber receives it.
        made.known_after = len(self.accepted.union(self.witness.received))

    @property
    def witness(self) -> "Subscriber":
        """The first subscriber: it does nothing, so that it receives each element as it comes."""
        return self.subscribers[0]


@dataclass
class Subscriber:
    program: Program
    demand: int
    is_witness: bool = False
    received: list[int] = field(default_factory=list[int])
    requested: int = 0
    known_before: int = 0
    known_after: int = 0
    is_joining: bool = True
    has_left: bool = False
    is_complete: bool = False
    error: BaseException | None = None
    subscription: Subscription | None = None

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription
        self.request(self.demand)
        self._act()

    def on_next(self, element: int, /) -> None:
        assert not self.is_complete
        self.received.append(element)
        self._act()
        if self.requested < MANY and self.program.random.random() < 0.5:
            self.request(1)

    def on_error(self, error: BaseException, /) -> None:
        self.error = error

    def on_complete(self) -> None:
        self.is_complete = True
        self._act()

    def _act(self) -> None:
        if not self.is_witness:
            self.program.act(self)

    def request(self, n: int) -> None:
        if self.subscription is not None and not self.has_left:
            self.requested += n
            self.subscription.request(n)

    def leave(self) -> None:
        if self.subscription is not None:
            self.has_left = True
            self.subscription.cancel()


async def run(hot: Hot, seed: int) -> Program:
    program = Program(hot, Random(seed))
    witness = Subscriber(program, MANY, is_witness=True)
    program.subscribers.append(witness)
    hot.flow.subscribe(witness)
    witness.is_joining = False
    for _ in range(program.random.randint(1, 6)):
        program.act()
        if program.random.random() < 0.3:
            await asyncio.sleep(0)
    program.is_over = True
    program.subscribe()
    for subscriber in program.subscribers:
        subscriber.request(MANY)
    await asyncio.sleep(0.001)
    return program


def verify(program: Program) -> None:
    order, retains = program.witness.received, program.hot.retains
    emitted = [element for element in order if element]  # but not a first value of 0
    assert len(set(order)) == len(order)
    assert set(emitted) == program.accepted
    for subscriber in program.subscribers[1:]:
        assert subscriber.error is None
        joined = range(subscriber.known_before, subscriber.known_after + 1)
        expected = [order[max(0, place - retains) :] for place in joined]
        received = subscriber.received
        if subscriber.has_left:
            expected = [each[: len(received)] for each in expected]
        else:
            assert subscriber.is_complete is program.is_ended
        if program.hot.misses:
            assert received == sorted(received, key=order.index)
            assert subscriber.has_left or received[-1:] == order[-1:]
        else:
            assert received in expected


@pytest.mark.virtual_time
@pytest.mark.parametrize("make", HOT.values(), ids=HOT)
async def test_each_receives_what_is_retained_and_then_each_element_once(
    make: Callable[[], Hot],
) -> None:
    for seed in range(scaled(6_000)):
        program = await run(make(), seed)
        try:
            verify(program)
        except AssertionError as error:
            error.add_note(f"with seed {seed}")
            raise
