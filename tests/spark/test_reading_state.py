"""What a subscription in mode "arrow" does next, without Spark and without a socket."""

from collections.abc import Iterator

import pytest
from hypothesis import given, strategies as st

from reactive_aio.spark.arrow.reading_state import (
    AHEAD,
    Action,
    BatchSizes,
    Phase,
    ReadingState,
    Window,
)


class Driver:
    """Carries out the actions on partitions of *elements* elements each."""

    def __init__(
        self, partitions: int, elements: int = 10, *, largest: int = 4, is_ordered: bool = True
    ) -> None:
        self.state = ReadingState[int](
            largest=largest, batch_sizes=BatchSizes(5, 5), is_ordered=is_ordered
        )
        self.state.on_planned(partitions)
        self.state.is_prepared = True
        self.elements = elements
        self.actions = list[Action]()
        self.running = list[Window]()
        self.received = list[int]()

    cleanup = None
    on_discard = None
    outstanding = 0
    awaits = False

    def push(self, elements: list[int], /) -> None:
        self.received += elements

    def try_push(self, element: int, /) -> None: ...

    def lend(self, elements: Iterator[int], count: int, /) -> None: ...

    def complete(self) -> None: ...

    def fail(self, error: BaseException, /) -> None: ...

    def advance(self) -> Action:
        """Act until there is nothing to do, processing elements at once; return the last action."""
        while True:
            action = self.state.next_action()
            self.actions.append(action)
            match action:
                case Action.LAUNCH:
                    self.running.append(self.state.window)
                case Action.READ:
                    if not self.read(self.state.window):
                        return action
                case Action.PUSH:
                    self.state.push(self)
                    self.state.is_processed = True
                case Action.CONFIRM:
                    self.state.on_confirmed()
                case _:
                    return action

    def read(self, window: Window) -> bool:
        """Read up to five elements of *window*, or its end; return whether there was any."""
        first = window.start * self.elements + window.elements
        count = min(5, window.stop * self.elements - first)
        if not count:
            self.state.on_end(window)
        elif not self.state.demand:
            return False  # without demand, only the end is read
        else:
            window.elements += count
            window.bytes += count
            self.state.held.put(iter([(iter(range(first, first + count)), count)]), count)
        return True

    def request(self, n: int) -> Action:
        self.state.request(n)
        return self.advance()

    def serve(self, number: int = 0) -> Action:
        """The job of a window ends."""
        self.state.on_served(self.running.pop(number))
        return self.advance()


def test_nothing_is_launched_before_the_plan_and_the_preparation() -> None:
    state = ReadingState[int](largest=4, batch_sizes=BatchSizes(5, 5), is_ordered=True)
    state.request(1)
    assert state.next_action() is Action.WAIT
    state.on_planned(3)
    assert state.next_action() is Action.WAIT
    state.is_prepared = True
    assert state.next_action() is Action.LAUNCH


def test_nothing_is_launched_without_demand() -> None:
    assert Driver(3).advance() is Action.WAIT


@pytest.mark.parametrize(
    ("largest", "jobs"), [(1, [1] * 10), (4, [1, 1, 2, 3, 3])], ids=["one", "many"]
)
def test_a_reader_is_expected_to_read_as_much_again(largest: int, jobs: list[int]) -> None:
    """Few elements at a time, as `async for` and workers request them."""
    driver, launched = Driver(10, largest=largest), list[Window]()
    driver.request(1)
    for _ in range(200):
        while driver.running:
            launched.append(driver.running[0])
            driver.serve()
            beyond = launched[-1].stop * 10 - len(driver.received)
            assert largest == 1 or beyond <= len(driver.received) + 10 * launched[-1].partitions
        driver.request(1)
    assert driver.received == [*range(100)]
    assert [each.partitions for each in launched] == jobs


def test_nothing_is_expected_without_demand() -> None:
    driver = Driver(10)
    driver.request(10)
    driver.serve()
    assert len(driver.received) == 10
    assert not driver.running
    assert driver.advance() is Action.WAIT


def test_without_partitions_it_completes() -> None:
    assert Driver(0).request(1) is Action.COMPLETE


def test_elements_wait_until_those_before_have_been_processed() -> None:
    driver = Driver(1)
    driver.request(7)
    driver.state.on_served(driver.running.pop())
    assert driver.state.next_action() is Action.READ
    driver.read(driver.state.window)
    assert driver.state.next_action() is Action.PUSH
    driver.state.push(driver)
    assert driver.state.next_action() is Action.WAIT
    driver.state.is_processed = True
    assert driver.state.next_action() is Action.READ


def test_a_window_is_confirmed_before_the_next_one_is_launched() -> None:
    driver = Driver(3, largest=1)
    driver.request(11)
    driver.actions.clear()
    driver.serve()
    order = [each for each in driver.actions if each in (Action.CONFIRM, Action.LAUNCH)]
    assert order == [Action.CONFIRM, Action.LAUNCH]


def test_an_unconfirmed_window_blocks_the_next_one() -> None:
    driver = Driver(2)
    driver.request(100)
    window = driver.running.pop()
    driver.state.on_served(window)
    assert driver.state.next_action() is Action.READ
    window.elements = 10
    driver.state.on_end(window)
    assert driver.state.next_action() is Action.CONFIRM
    assert window.phase is Phase.CONFIRMING
    assert driver.state.next_action() is Action.LAUNCH
    driver.state.on_served(driver.state.window)
    assert driver.state.next_action() is Action.WAIT
    driver.state.on_confirmed()
    assert driver.state.next_action() is Action.READ


def test_a_failed_job_fails_the_flow_after_the_windows_before() -> None:
    driver = Driver(9)
    driver.request(10**9)
    driver.serve()
    first, second, *_ = driver.running
    error = ValueError("no")
    driver.state.on_failed(second, error)
    assert driver.advance() is Action.WAIT, "the window before has not been read"
    driver.state.on_served(first)
    assert driver.advance() is Action.FAIL
    assert driver.state.window.error is error


def test_a_broken_connection_launches_no_further_window() -> None:
    driver = Driver(9)
    driver.request(100)
    window = driver.running.pop()
    driver.state.on_served(window)
    driver.state.next_action()
    driver.state.on_end(window, EOFError())
    assert driver.state.next_action() is Action.CONFIRM
    assert driver.state.next_action() is Action.WAIT


def test_windows_are_read_in_order_or_as_their_jobs_end() -> None:
    for is_ordered in (True, False):
        driver = Driver(9, is_ordered=is_ordered)
        driver.request(10**9)
        driver.serve()
        assert len(driver.running) > 1
        driver.serve(1)
        assert (len(driver.received) > 10) is not is_ordered


@given(
    st.integers(0, 12),
    st.lists(st.one_of(st.integers(1, 40), st.just("serve")), max_size=60),
)
def test_every_element_is_delivered_once_and_never_beyond_demand(
    partitions: int, events: list[int | str]
) -> None:
    driver, requested = Driver(partitions, elements=7), 0
    for event in events:
        if isinstance(event, int):
            requested += event
            driver.request(event)
        elif driver.running:
            driver.serve()
        assert len(driver.received) <= requested
        assert len(driver.running) <= 1 + AHEAD
    driver.state.request(10**9)
    while driver.advance() is not Action.COMPLETE:
        driver.serve()
    assert driver.received == [*range(7 * partitions)]
