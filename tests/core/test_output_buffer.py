"""The output buffer under any sequence of calls: demand, capacity, order and counts."""

from typing import Any, cast, get_args

from hypothesis import stateful, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from reactive_aio._core.losses import DropCounter
from reactive_aio._core.queues.bounded_queue import BoundedQueue, Emission, OverflowPolicy
from reactive_aio._core.queues.output_buffer import OutputBuffer, SingleOutputBuffer
from reactive_aio.errors import Overflow

POLICIES: tuple[OverflowPolicy, ...] = get_args(OverflowPolicy)


class Downstream:
    """An island that processes elements when the machine reports it."""

    cleanup = None
    on_discard = None

    def __init__(self) -> None:
        self.elements: list[int] = []
        self.signals: list[BaseException | str] = []

    def push(self, elements: list[int], /) -> None:
        assert elements
        assert not self.signals
        self.elements += elements

    def push_one(self, element: int, /) -> None:
        self.push([element])

    def process(self) -> None:
        pass

    def complete(self) -> None:
        self.signals.append("|")

    def fail(self, error: BaseException, /) -> None:
        self.signals.append(error)


class BufferMachine(RuleBasedStateMachine):
    """All sequences of calls, against what must hold at any moment."""

    @initialize(capacity=st.integers(1, 4), overflow=st.sampled_from(POLICIES))
    def make(self, capacity: int, overflow: OverflowPolicy) -> None:
        self.make_with(capacity, overflow, OutputBuffer)

    def make_with(
        self, capacity: int, overflow: OverflowPolicy, kind: type[OutputBuffer[int]]
    ) -> None:
        self.downstream = Downstream()
        self.queue: BoundedQueue[int] = BoundedQueue(capacity, overflow, DropCounter("queue"))
        self.room_count = self.cancel_count = 0
        self.buffer: OutputBuffer[int] = kind(
            cast("Any", self.downstream),
            self.queue,
            "here",
            on_room=self.count_room,
            on_cancel=self.count_cancel,
        )
        self.requested = self.processed = self.next = self.refused = 0
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
        is_refused = outcome is Emission.REFUSED
        assert is_refused == (self.queue.policy == "wait" and room <= 0)
        self.next += not is_refused
        self.is_over = outcome is Emission.OVERFLOWED

    @rule(count=st.integers(1, 6))
    def offer_all(self, count: int) -> None:
        if self.queue.policy == "wait":
            count = min(count, self.buffer.room)  # as its callers do
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
        held = len(self.queue)
        self.buffer.fail_at_once(OSError())
        if not self.is_over:
            assert self.queue.drops.by_reason["overtaken"] == held
            assert self.downstream.signals
        self.is_over = True

    # -- the island -------------------------------------------------------------------------------
    @rule(count=st.integers(1, 6))
    def request(self, count: int) -> None:
        self.requested += count
        self.processed = len(self.downstream.elements)
        self.buffer.request(count)

    @rule()
    def report(self) -> None:
        was_full, before = self.buffer.room <= 0, self.room_count
        self.processed = len(self.downstream.elements)
        self.buffer.processed()
        assert not was_full or self.room_count > before

    @precondition(lambda self: self.next > 4 and not self.downstream.signals)
    @rule()
    def cancel(self) -> None:
        self.buffer.cancel()
        self.is_over = True

    # -- what holds -------------------------------------------------------------------------------
    @invariant()
    def demand_is_never_exceeded_rule_1_1(self) -> None:
        assert self.requested - len(self.downstream.elements) >= 0
        if not self.buffer.is_closed:
            assert self.buffer.requested == self.requested - len(self.downstream.elements)

    @invariant()
    def the_capacity_is_never_exceeded(self) -> None:
        unprocessed = len(self.downstream.elements) - self.processed
        lends = self.queue.policy != "latest"
        assert len(self.queue) + unprocessed * lends <= self.queue.capacity
        if not self.buffer.is_closed:
            assert self.buffer.held == len(self.queue) + unprocessed * lends
            assert self.queue.highest >= self.buffer.held

    @invariant()
    def every_element_is_delivered_once_dropped_or_held(self) -> None:
        elements = self.downstream.elements
        assert elements == sorted(set(elements))
        dropped = sum(self.queue.drops.by_reason.values())
        assert len(elements) + dropped + len(self.queue) == self.next

    @invariant()
    def requested_elements_do_not_wait(self) -> None:
        assert self.buffer.is_closed or not (len(self.queue) and self.buffer.requested)

    @invariant()
    def it_ends_once(self) -> None:
        signals = self.downstream.signals
        assert len(signals) <= 1
        assert self.cancel_count <= 1
        assert self.buffer.is_ended == self.is_over
        if signals and isinstance(signals[0], Overflow):
            assert self.cancel_count == 1


def test_any_sequence_of_calls_keeps_demand_capacity_and_counts() -> None:
    cast("Any", stateful).run_state_machine_as_test(BufferMachine)


class SingleBufferMachine(BufferMachine):
    """Requested elements wait as well, while one is in delivery."""

    @initialize()
    def make(self) -> None:
        self.make_with(1, "latest", SingleOutputBuffer)

    @invariant()
    def requested_elements_do_not_wait(self) -> None:
        if len(self.downstream.elements) == self.processed:
            super().requested_elements_do_not_wait()

    @invariant()
    def one_element_is_in_delivery(self) -> None:
        assert len(self.downstream.elements) - self.processed <= 1


def test_one_element_at_a_time_is_in_delivery_after_any_sequence_of_calls() -> None:
    cast("Any", stateful).run_state_machine_as_test(SingleBufferMachine)


def new_buffer(capacity: int, overflow: OverflowPolicy) -> tuple[Downstream, Any, list[object]]:
    downstream, gone = Downstream(), list[object]()
    queue: BoundedQueue[int] = BoundedQueue(capacity, overflow, DropCounter("queue"))
    buffer: OutputBuffer[int] = OutputBuffer(
        cast("Any", downstream), queue, "here", on_room=lambda _: None, on_cancel=gone.append
    )
    return downstream, buffer, gone


def test_elements_that_waited_are_processed_as_well_while_there_is_credit() -> None:
    downstream, buffer, _ = new_buffer(4, "wait")
    buffer.offer_all([0, 1])
    buffer.request(4)
    assert (downstream.elements, buffer.held, buffer.room) == ([0, 1], 2, 2)
    buffer.processed()
    assert (buffer.held, buffer.room) == (0, 4)


def test_a_subscriber_that_cancels_after_its_queue_overflowed_leaves_once() -> None:
    _, buffer, gone = new_buffer(1, "fail")
    assert buffer.offer_all([0, 1, 2]) == 1
    assert buffer.offer(3).outcome is Emission.ENDED
    buffer.cancel()
    assert gone == [buffer]
    assert buffer.queue.drops.by_reason == {"fail": 1, "discarded": 1}
