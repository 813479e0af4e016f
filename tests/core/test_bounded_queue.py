"""The bounded queue under every policy: the bound holds, and every element is counted."""

from itertools import islice
from typing import Any, cast, get_args

import pytest
from hypothesis import stateful, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
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
    """All sequences of calls, against a list, and the sums that must hold at any moment."""

    @initialize(capacity=st.integers(0, 4), overflow=st.sampled_from(POLICIES))
    def make(self, capacity: int, overflow: OverflowPolicy) -> None:
        self.queue: BoundedQueue[int] = BoundedQueue(capacity, overflow, DropCounter("queue"))
        self.next = 0
        self.model: list[int] = []
        self.lost: list[int] = []
        self.out: list[int] = []
        self.lent = 0

    @rule()
    def offer(self) -> None:
        element, is_full = self.next, self.queue.room <= 0
        decision = self.queue.offer(element)
        assert (decision.outcome is Emission.ACCEPTED) or is_full
        if decision.outcome is Emission.REFUSED:
            assert self.queue.policy == "wait"
            return
        self.next += 1
        if decision.dropped is not None:
            assert decision.reason == self.queue.policy
            self.lost.append(decision.dropped)
            if decision.dropped in self.model:
                assert self.model.pop(0) == decision.dropped  # the oldest, lent or not
        if decision.outcome is Emission.ACCEPTED:
            self.model.append(element)

    @rule()
    def follow(self) -> None:
        is_full, is_used = self.queue.room <= 0, bool(self.queue.elements)
        has_followed = self.queue.follow(self.next)
        assert not has_followed or (is_used and not is_full)
        assert has_followed or not self.model or len(self.queue.elements) >= self.queue.capacity
        if has_followed:
            self.model.append(self.next)
            self.next += 1

    @rule(count=st.integers(0, 4))
    def enter_all(self, count: int) -> None:
        count = min(count, self.queue.room)
        elements = [*range(self.next, self.next + count)]
        self.queue.enter_all(elements)
        self.model += elements
        self.next += count

    @rule(at_most=st.integers(0, 5))
    def lend(self, at_most: int) -> None:
        count = self.queue.lend(at_most)
        assert count == min(at_most, len(self.model) - self.lent)
        self.lent += count

    @precondition(lambda self: self.lent)
    @rule()
    def take(self) -> None:
        """The reader comes to the next element that was lent to it."""
        element = next(self.queue.rest)
        assert element == self.model.pop(0)
        self.lent -= 1
        self.out.append(element)

    @rule()
    def tidy(self) -> None:
        self.queue.tidy()
        assert self.queue.elements == self.model

    @rule(data=st.data())
    def discard(self, data: st.DataObject) -> None:
        but = data.draw(st.integers(self.lent, 6))
        assert self.queue.discard(but=but) == self.model[but:]
        self.lost += self.model[but:]
        del self.model[but:]

    @invariant()
    def as_many_are_lent_as_the_reader_was_promised(self) -> None:
        assert self.queue.lent == self.lent

    @invariant()
    def the_bound_is_never_exceeded(self) -> None:
        assert len(self.queue) == len(self.model) <= self.queue.capacity
        assert len(self.queue) <= self.queue.highest <= self.queue.capacity

    @invariant()
    def what_has_left_is_not_kept_for_long(self) -> None:
        assert len(self.queue.elements) <= 2 * self.queue.capacity + 32

    @invariant()
    def every_element_is_accounted_for(self) -> None:
        dropped = sum(self.queue.drops.by_reason.values())
        assert dropped == len(self.lost)
        assert sorted(self.out + self.lost + self.model) == [*range(self.next)]
        assert self.out == sorted(self.out)


def test_any_sequence_of_calls_keeps_the_capacity_and_the_sums() -> None:
    cast("Any", stateful).run_state_machine_as_test(QueueMachine)


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
    assert [*queue.rest] == left


def test_latest_holds_one_whatever_its_capacity() -> None:
    queue: BoundedQueue[int] = BoundedQueue(9, "latest", DropCounter("queue"))
    assert [queue.offer(x).dropped for x in range(3)] == [None, 0, 1]
    assert [*queue.rest] == [2]
    assert queue.drops.by_reason == {"latest": 2}


def test_a_reader_that_was_lent_two_elements_receives_the_two_that_are_left_by_the_policy() -> None:
    queue: BoundedQueue[int] = BoundedQueue(2, "drop_oldest", DropCounter("queue"))
    queue.enter_all([0, 1])
    assert queue.lend(2) == 2
    reader = islice(queue.rest, 2)
    for x in range(2, 1000):
        queue.offer(x)
    assert [*reader] == [998, 999]


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
        box = mailbox("wait")
        assert [box.put(x) for x in range(3)] == [
            (Emission.ACCEPTED, True),
            (Emission.ACCEPTED, False),
            (Emission.REFUSED, False),
        ]
        assert box.take() == 0
        box.give_back(0)
        assert [box.take(), box.take(), box.take()] == [0, 1, None]
        assert box.drops.by_reason == {"refused": 1}

    @pytest.mark.parametrize(
        ("overflow", "left", "outcome"),
        [
            ("drop_newest", [0, 1], Emission.DROPPED),
            ("drop_oldest", [2, 3], Emission.ACCEPTED),
            ("latest", [2, 3], Emission.ACCEPTED),
            ("fail", [0, 1], Emission.OVERFLOWED),
        ],
    )
    def test_the_policy_decides_about_the_third_element_of_two(
        self, overflow: OverflowPolicy, left: list[int], outcome: Emission
    ) -> None:
        box = mailbox(overflow)
        outcomes = [box.put(x)[0] for x in range(4)]
        assert outcomes[2] is outcome
        assert outcomes[3] is (Emission.ENDED if overflow == "fail" else outcome)
        assert [*box.held] == left
        assert box.drops.by_reason == {overflow: 1 if overflow == "fail" else 2}

    def test_a_closed_mailbox_accepts_nothing_and_returns_what_it_holds(self) -> None:
        box = mailbox("wait")
        box.put(0)
        box.close()
        assert box.put(1) == (Emission.ENDED, False)
        assert box.take() == 0

    def test_discarding_returns_the_elements(self) -> None:
        box = mailbox("wait")
        box.put(0)
        assert box.discard() == [0]
        assert box.put(1) == (Emission.ENDED, False)


def mailbox(overflow: OverflowPolicy) -> ThreadMailbox[int]:
    return ThreadMailbox(2, overflow, DropCounter("mailbox"))
