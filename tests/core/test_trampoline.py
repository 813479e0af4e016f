"""The trampoline: order, one worker, the capacity, and threads."""

import sys
import threading
from collections import deque

import pytest
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from reactive_aio._core.trampoline import ExecutorState, Trampoline
from reactive_aio.errors import Overflow
from tests.core import machines


def number(n: int) -> tuple[type[int], tuple[int]]:
    return int, (n,)


class Model(RuleBasedStateMachine):
    """A deque and a flag, for the same calls."""

    capacity: int | None = None

    def __init__(self) -> None:
        super().__init__()
        self.real = Trampoline(self.capacity)
        self.waiting: deque[int] = deque()
        self.worker = self.closed = False
        self.offered = 0

    @rule()
    def offer(self) -> None:
        full = self.capacity is not None and len(self.waiting) >= self.capacity and not self.closed
        if full:
            with pytest.raises(Overflow):
                self.real.offer(number(-1))
            return
        must_run = self.real.offer(number(self.offered))
        assert must_run == (not self.worker and not self.closed)
        if not self.closed:
            self.worker = True
            self.waiting.append(self.offered)
        self.offered += 1

    @precondition(lambda self: self.worker)
    @rule()
    def take(self) -> None:
        job = self.real.take()
        if self.waiting and not self.closed:
            assert job == number(self.waiting.popleft())
        else:
            assert job is None
            self.worker = False

    @rule()
    def close(self) -> None:
        self.real.close()
        assert not len(self.real)
        self.waiting.clear()
        self.closed = True

    @invariant()
    def it_holds_what_the_model_holds(self) -> None:
        assert len(self.real) == len(self.waiting)
        state = (
            ExecutorState.CLOSED
            if self.closed
            else ExecutorState.RUNNING
            if self.worker
            else ExecutorState.IDLE
        )
        assert self.real.state is state


class BoundedModel(Model):
    capacity = 3


def test_it_is_a_queue_with_one_worker() -> None:
    machines.run(Model)


def test_it_is_a_bounded_queue_with_one_worker() -> None:
    machines.run(BoundedModel)


def test_an_overflow_names_the_capacity_and_a_remedy() -> None:
    trampoline = Trampoline(1)
    trampoline.offer(number(1))
    with pytest.raises(Overflow, match=r"holds 1 elements, its capacity.*larger capacity"):
        trampoline.offer(number(2))
    assert len(trampoline) == 1


def test_there_is_one_worker_at_a_time_whatever_the_threads_do() -> None:
    """1.3: nothing is lost, nothing runs twice, no two jobs at once."""
    trampoline = Trampoline(None)
    ran: list[tuple[int, int]] = []
    inside = threading.Lock()
    overlaps: list[object] = []

    def work() -> None:
        while (job := trampoline.take()) is not None:
            if not inside.acquire(blocking=False):
                overlaps.append(job)
                continue
            ran.append(job[1])  # type: ignore[arg-type]
            inside.release()

    def offer(thread: int) -> None:
        for n in range(500):
            if trampoline.offer((int, (thread, n))):
                work()

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=offer, args=(index,)) for index in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert overlaps == []
    assert len(ran) == 2000
    for index in range(4):
        assert [n for thread, n in ran if thread == index] == list(range(500))
    assert trampoline.state is ExecutorState.IDLE
