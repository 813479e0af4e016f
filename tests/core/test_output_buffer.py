"""The output buffer under any sequence of calls: demand, capacity, order and counts."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, cast, get_args

from hypothesis import stateful, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from reactive_aio._core.losses import DropCounter
from reactive_aio._core.queues.bounded_queue import BoundedQueue, Emission, OverflowPolicy
from reactive_aio._core.queues.output_buffer import OutputBuffer

POLICIES: tuple[OverflowPolicy, ...] = get_args(OverflowPolicy)


class Downstream:
    """An island that is lent elements, and processes them when the machine says so."""

    cleanup = None
    on_discard = None

    def __init__(self) -> None:
        self.elements: list[int] = []
        """Those that it has processed."""
        self.signals: list[BaseException | str] = []
        self.outstanding = 0
        self.lent: list[Iterator[int]] = []
        self.is_idle = False
        """Whether it waits for an element, and processes it in the producer's call."""

    def try_push(self, element: int, /) -> bool | None:
        if not self.is_idle or not self.outstanding or self.lent or self.signals:
            return None
        self.outstanding -= 1
        self.elements.append(element)
        return True

    def lend(self, elements: Iterator[int], count: int, /) -> None:
        assert 0 < count <= self.outstanding
        assert not self.signals
        self.outstanding -= count
        self.is_idle = False
        self.lent.append(islice(elements, count))

    def process_one(self) -> bool:
        while self.lent:
            for element in self.lent[0]:
                self.elements.append(element)
                return True
            del self.lent[0]
        return False

    def complete(self) -> None:
        self.signals.append("|")

    def fail(self, error: BaseException, /) -> None:
        self.signals.append(error)


class BufferMachine(RuleBasedStateMachine):
    """All sequences of calls, against what must hold at any moment."""

    @initialize(capacity=st.integers(0, 4), overflow=st.sampled_from(POLICIES))
    def make(self, capacity: int, overflow: OverflowPolicy) -> None:
        self.downstream = Downstream()
        self.queue: BoundedQueue[int] = BoundedQueue(capacity, overflow, DropCounter("queue"))
        self.room_count = self.cancel_count = 0
        self.buffer: OutputBuffer[int] = OutputBuffer(
            cast("Any", self.downstream),
            self.queue,
            "here",
            on_room=self.count_room,
            on_cancel=self.count_cancel,
        )
        self.requested = self.next = 0
        self.is_over = False

    def count_room(self, buffer: OutputBuffer[int]) -> None:
        assert buffer is self.buffer
        self.room_count += 1

    def count_cancel(self, buffer: OutputBuffer[int]) -> None:
        assert buffer is self.buffer
        assert buffer.is_ended
        self.cancel_count += 1

    # -- the source -------------------------------------------------------------------------------
    @rule()
    def offer(self) -> None:
        room = self.buffer.room
        outcome = self.buffer.offer(self.next).outcome
        if self.is_over:
            assert outcome is Emission.ENDED
            return
        if outcome is Emission.REFUSED:
            assert self.queue.policy == "wait"
            assert room <= 0
        else:
            self.next += 1
        self.is_over = outcome is Emission.OVERFLOWED

    @rule(count=st.integers(1, 6))
    def offer_all(self, count: int) -> None:
        if self.queue.policy == "wait":
            count = max(0, min(count, self.buffer.room))  # as its callers do
        elements = [*range(self.next, self.next + count)]
        accepted = self.buffer.offer_all(list(elements)) if elements else 0
        if self.is_over:
            assert accepted == 0
        elif accepted < count and self.queue.policy == "fail":
            self.next += accepted + 1
            self.is_over = True
        else:
            self.next += count

    @precondition(lambda self: self.next > 4)
    @rule()
    def end(self) -> None:
        self.buffer.end()
        self.is_over = True

    @precondition(lambda self: self.next > 4)
    @rule()
    def fail_at_once(self) -> None:
        kept = min(len(self.queue), self.queue.lent + self.downstream.outstanding)
        overtaken = len(self.queue) - kept
        self.buffer.fail_at_once(OSError())
        if not self.is_over:
            assert self.queue.drops.by_reason["overtaken"] == overtaken
            assert len(self.queue) == kept
        self.is_over = True

    # -- the island -------------------------------------------------------------------------------
    @rule(count=st.integers(1, 6))
    def request(self, count: int) -> None:
        if not self.downstream.signals:
            self.requested += count
            self.downstream.outstanding += count
            self.buffer.request(count)

    @rule()
    def process_one(self) -> None:
        self.downstream.process_one()

    @rule()
    def become_idle(self) -> None:
        while self.downstream.process_one():
            pass
        before = self.room_count
        self.buffer.processed()
        assert self.room_count > before
        self.downstream.is_idle = not self.downstream.lent and not self.buffer.is_closed

    @rule()
    def become_busy(self) -> None:
        self.downstream.is_idle = False

    @precondition(lambda self: self.next > 4 and not self.downstream.signals)
    @rule()
    def cancel(self) -> None:
        self.buffer.cancel()
        self.is_over = True
        self.downstream.lent.clear()
        self.downstream.is_idle = False
        self.downstream.signals.append("cancelled")

    # -- what holds -------------------------------------------------------------------------------
    @invariant()
    def demand_is_never_exceeded_rule_1_1(self) -> None:
        delivered = len(self.downstream.elements)
        assert delivered <= self.requested
        if not self.buffer.is_closed:
            assert delivered + self.queue.lent + self.downstream.outstanding == self.requested

    @invariant()
    def the_capacity_is_never_exceeded(self) -> None:
        assert self.buffer.held <= self.queue.capacity or not self.queue.capacity
        assert self.buffer.held <= self.queue.highest

    @invariant()
    def every_element_is_delivered_once_dropped_or_held(self) -> None:
        elements = self.downstream.elements
        assert elements == sorted(set(elements))
        dropped = sum(self.queue.drops.by_reason.values())
        assert len(elements) + dropped + len(self.queue) == self.next

    @invariant()
    def an_idle_reader_is_lent_what_it_has_requested(self) -> None:
        if not self.buffer.is_closed and len(self.queue) and self.downstream.outstanding:
            assert self.queue.lent or not self.downstream.is_idle

    @invariant()
    def it_ends_once(self) -> None:
        signals = self.downstream.signals
        assert len(signals) <= 1
        assert self.cancel_count <= 1
        assert self.buffer.is_ended == self.is_over


def test_any_sequence_of_calls_keeps_demand_capacity_and_counts() -> None:
    cast("Any", stateful).run_state_machine_as_test(BufferMachine)


def new_buffer(capacity: int, overflow: OverflowPolicy) -> tuple[Downstream, Any, list[object]]:
    downstream, gone = Downstream(), list[object]()
    queue: BoundedQueue[int] = BoundedQueue(capacity, overflow, DropCounter("queue"))
    buffer: OutputBuffer[int] = OutputBuffer(
        cast("Any", downstream), queue, "here", on_room=lambda _: None, on_cancel=gone.append
    )
    return downstream, buffer, gone


def test_elements_that_are_lent_count_until_they_are_processed() -> None:
    downstream, buffer, _ = new_buffer(4, "wait")
    buffer.offer_all([0, 1])
    downstream.outstanding = 4
    buffer.request(4)
    assert (buffer.held, buffer.room) == (2, 2)
    downstream.process_one()
    assert (buffer.held, buffer.room, buffer.queue.highest) == (1, 3, 2)


def test_a_subscriber_that_cancels_after_its_queue_overflowed_leaves_once() -> None:
    _, buffer, gone = new_buffer(1, "fail")
    assert buffer.offer_all([0, 1, 2]) == 1
    assert buffer.offer(3).outcome is Emission.ENDED
    buffer.cancel()
    assert gone == [buffer]
    assert buffer.queue.drops.by_reason == {"fail": 1, "discarded": 1}
