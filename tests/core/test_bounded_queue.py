"""The bounded queue under every policy: the bound holds, and every element is counted."""

from typing import Any, cast, get_args

import pytest
from hypothesis import given, stateful, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from reactive_aio._core.losses import DISCARDED, OVERTAKEN, DropCounter
from reactive_aio._core.queues.bounded_queue import (
    BoundedQueue,
    Emission,
    OverflowPolicy,
    ThreadMailbox,
    require_capacity,
    require_policy,
)

POLICIES: tuple[OverflowPolicy, ...] = get_args(OverflowPolicy)


class QueueMachine(RuleBasedStateMachine):
    """All sequences of calls, against the sums that must hold at any moment."""

    @initialize(capacity=st.integers(0, 4), overflow=st.sampled_from(POLICIES))
    def make(self, capacity: int, overflow: OverflowPolicy) -> None:
        self.queue: BoundedQueue[int] = BoundedQueue(capacity, overflow, DropCounter("queue"))
        self.capacity = capacity
        self.next = 0
        self.model: list[int] = []
        self.lost: list[int] = []
        self.out: list[int] = []

    @rule()
    def offer(self) -> None:
        element, full = self.next, self.queue.full
        decision = self.queue.offer(element)
        assert (decision.outcome is Emission.ACCEPTED) or full
        if decision.outcome is Emission.REFUSED:
            assert self.queue.policy == "wait"
            return
        self.next += 1
        if decision.dropped is not None:
            assert decision.reason == self.queue.policy
            self.lost.append(decision.dropped)
            if decision.dropped in self.model:
                assert self.model.pop(0) == decision.dropped  # the oldest
        if decision.outcome is Emission.ACCEPTED:
            self.model.append(element)

    @rule()
    def follow(self) -> None:
        is_full = self.queue.full
        has_followed = self.queue.follow(self.next)
        assert has_followed == (bool(self.model) and not is_full)
        if has_followed:
            self.model.append(self.next)
            self.next += 1

    @rule(demand=st.integers(0, 3))
    def pass_by(self, demand: int) -> None:
        count = self.queue.passing(demand)
        assert count <= demand
        assert not (count and self.model)
        self.queue.lend(count, count)
        self.out += range(self.next, self.next + count)
        self.next += count

    @rule(at_most=st.integers(0, 5))
    def take(self, at_most: int) -> None:
        taken = self.queue.take(at_most)
        assert taken == self.model[:at_most]
        del self.model[:at_most]
        self.out += taken

    @rule()
    def settle(self) -> None:
        self.queue.settle()

    @rule()
    def discard(self) -> None:
        self.queue.discard()
        self.lost += self.model
        self.model.clear()

    @invariant()
    def the_bound_is_never_exceeded(self) -> None:
        assert len(self.queue) + self.queue.lent <= max(self.capacity, 0) or self.capacity == 0
        assert len(self.queue) <= self.capacity
        assert self.queue.highest <= max(self.capacity, self.queue.lent)

    @invariant()
    def every_element_is_accounted_for(self) -> None:
        queue = self.queue
        dropped = sum(queue.drops.by_reason.values())
        assert queue.taken + dropped + len(queue) == self.next
        assert (queue.taken, dropped, len(queue)) == (
            len(self.out),
            len(self.lost),
            len(self.model),
        )
        assert self.out == sorted(self.out)


def test_any_sequence_of_calls_keeps_the_capacity_and_the_sums() -> None:
    cast("Any", stateful).run_state_machine_as_test(QueueMachine)


@given(
    capacity=st.integers(0, 4),
    overflow=st.sampled_from(POLICIES),
    held=st.integers(0, 4),
    lent=st.integers(0, 4),
    count=st.integers(0, 6),
)
def test_offering_all_is_offering_each_until_one_is_refused_or_overflows(
    capacity: int, overflow: OverflowPolicy, held: int, lent: int, count: int
) -> None:
    one, other = (
        BoundedQueue[int](capacity, overflow, DropCounter("queue")),
        BoundedQueue[int](capacity, overflow, DropCounter("queue")),
    )
    for queue in (one, other):
        for x in range(held):
            queue.offer(x)
        queue.take(lent)
    accepted = 0
    for x in range(10, 10 + count):
        outcome = other.offer(x).outcome
        accepted += bool(outcome)
        if outcome in (Emission.REFUSED, Emission.OVERFLOWED):
            break
    assert one.offer_all([*range(10, 10 + count)]) == accepted
    assert (one.held, one.highest) == (other.held, other.highest)
    assert one.drops.by_reason == other.drops.by_reason


@given(capacity=st.integers(1, 5), count=st.integers(0, 12))
def test_wait_refuses_without_room_and_loses_nothing(capacity: int, count: int) -> None:
    queue: BoundedQueue[int] = BoundedQueue(capacity, "wait", DropCounter("queue"))
    accepted = [x for x in range(count) if queue.offer(x).outcome]
    assert queue.take(99) == accepted == list(range(min(capacity, count)))
    assert not queue.drops.by_reason


@pytest.mark.parametrize(
    ("overflow", "left", "outcome"),
    [
        ("drop_newest", [0, 1], Emission.DROPPED),
        ("drop_oldest", [1, 2], Emission.ACCEPTED),
        ("fail", [0, 1], Emission.OVERFLOWED),
        ("wait", [0, 1], Emission.REFUSED),
    ],
)
def test_the_policy_decides_about_the_third_element_of_two(
    overflow: OverflowPolicy, left: list[int], outcome: Emission
) -> None:
    queue: BoundedQueue[int] = BoundedQueue(2, overflow, DropCounter("queue"))
    assert [queue.offer(x).outcome for x in range(3)][-1] is outcome
    assert queue.take(9) == left


def test_latest_holds_one_whatever_its_capacity() -> None:
    queue: BoundedQueue[int] = BoundedQueue(9, "latest", DropCounter("queue"))
    assert [queue.offer(x).dropped for x in range(3)] == [None, 0, 1]
    assert queue.take(9) == [2]
    assert queue.drops.by_reason == {"latest": 2}


def test_lent_elements_count_until_they_are_settled() -> None:
    queue: BoundedQueue[int] = BoundedQueue(2, "wait", DropCounter("queue"))
    queue.offer(0)
    queue.offer(1)
    assert queue.take(2) == [0, 1]
    assert queue.full
    queue.settle()
    assert not queue.full


def test_discarded_elements_are_counted() -> None:
    queue: BoundedQueue[int] = BoundedQueue(2, "wait", DropCounter("queue"))
    queue.offer(0)
    queue.discard()
    assert queue.drops.by_reason == {DISCARDED: 1}
    queue.offer(1)
    queue.discard(OVERTAKEN)
    assert queue.drops.by_reason == {DISCARDED: 1, OVERTAKEN: 1}


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, None, "3"])
def test_a_capacity_is_an_int_of_at_least_one(wrong: object) -> None:
    with pytest.raises(ValueError, match="here: capacity must be"):
        require_capacity(wrong, "here")


def test_the_error_for_an_unknown_policy_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="here: overflow must be one of wait, drop_newest"):
        require_policy("drop", "here")


class TestMailbox:
    def test_a_put_into_an_empty_mailbox_wakes_the_loop(self) -> None:
        box: ThreadMailbox[int] = ThreadMailbox(2)
        assert [box.put(x) for x in range(3)] == [
            (Emission.ACCEPTED, True),
            (Emission.ACCEPTED, False),
            (Emission.REFUSED, False),
        ]
        assert box.first() == 0
        box.remove_first()
        assert len(box) == 1

    def test_a_closed_mailbox_accepts_nothing_and_returns_what_it_holds(self) -> None:
        box: ThreadMailbox[int] = ThreadMailbox(2)
        box.put(0)
        box.close()
        assert box.put(1) == (Emission.ENDED, False)
        assert box.first() == 0

    def test_discarding_returns_the_elements(self) -> None:
        box: ThreadMailbox[int] = ThreadMailbox(2)
        box.put(0)
        assert box.discard() == [0]
        assert box.put(1) == (Emission.ENDED, False)
