"""InputQueue: demand travels up as the island needs it, and no more elements travel down."""

from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from reactive_aio._core.compiler.loop_runtime import UpstreamFailed
from reactive_aio._core.demand import UNBOUNDED
from reactive_aio._core.subscription.input_queue import InputQueue
from reactive_aio.errors import RuleViolation
from reactive_aio.stage import FlowSubscription
from tests.core import machines


class Upstream(FlowSubscription):
    """Counts what it is asked."""

    def __init__(self, *, on_request: Callable[[int], object] | None = None) -> None:
        self.requests: list[int] = []
        self.cancelled = 0
        self.on_request = on_request

    def request(self, n: int, /) -> None:
        self.requests.append(n)
        if self.on_request is not None:
            self.on_request(n)

    def cancel(self) -> None:
        self.cancelled += 1


class Woken:
    """An island that notes when it is woken, and takes no element directly."""

    def __init__(self, wakes: list[str]) -> None:
        self._wakes = wakes

    def wake(self) -> None:
        self._wakes.append("wake")

    def resume(self, _: tuple[object, ...], /) -> None:
        pass


def intake(*, window: int = UNBOUNDED) -> tuple["InputQueue[int]", Upstream, list[str]]:
    wakes: list[str] = []
    made: InputQueue[int] = InputQueue(Woken(wakes), window)
    made.upstream = upstream = Upstream()
    return made, upstream, wakes


class Traffic(RuleBasedStateMachine):
    """An island that delivers or drops, and an upstream that sends what was requested."""

    def __init__(self) -> None:
        super().__init__()
        self.window = 7
        self.intake, self.upstream, self.wakes = intake(window=self.window)
        self.demand = self.sent = self.next = 0
        self.hand: list[int] = []
        self.expected = 0

    @rule(n=st.integers(1, 20))
    def more_demand(self, n: int) -> None:
        self.demand += n

    @precondition(lambda self: not self.hand)
    @rule()
    def ask(self) -> None:
        if not self.intake.has_news:
            self.intake.request_needed(self.demand)

    @precondition(lambda self: self.intake.outstanding > 0)
    @rule(data=st.data())
    def send(self, data: st.DataObject) -> None:
        n = data.draw(st.integers(1, min(self.intake.outstanding, 100)))
        self.intake.push(list(range(self.next, self.next + n)))
        self.next += n

    @precondition(lambda self: self.intake.has_news)
    @rule(at_most=st.integers(1, 10))
    def take(self, at_most: int) -> None:
        got = self.intake.take(at_most)
        assert got is not None
        assert len(got) <= at_most
        self.hand += got

    @precondition(lambda self: self.hand)
    @rule(delivers=st.booleans())
    def process(self, delivers: bool) -> None:
        assert self.hand.pop(0) == self.expected  # in order, none lost
        self.expected += 1
        if delivers and self.demand:
            self.demand -= 1

    @invariant()
    def what_is_on_its_way_is_bounded(self) -> None:
        asked = sum(self.upstream.requests)
        assert self.intake.outstanding == asked - self.next >= 0
        assert self.intake.outstanding <= self.window


def test_any_traffic_loses_no_element_and_delivers_none_without_demand() -> None:
    machines.run(Traffic)


def test_a_pushed_list_is_copied() -> None:
    made, _, _ = intake()
    mine = [1]
    made.request_needed(3)
    made.push(mine)
    made.push([2])
    mine.append(9)
    assert made.take(9) == [1, 2]


def test_it_requests_only_what_is_missing() -> None:
    made, upstream, _ = intake()
    made.request_needed(5)
    made.push([1, 2])
    made.take(9)
    made.request_needed(5)  # two more were dropped on the way
    assert upstream.requests == [5, 2]


def test_the_window_limits_the_elements_in_flight() -> None:
    made, upstream, _ = intake(window=4)
    made.request_needed(100)
    made.request_needed(100)
    made.push([1])
    made.request_needed(100)
    assert upstream.requests == [4, 1]


def test_unbounded_demand_is_requested_once() -> None:
    """3.17."""
    made, upstream, _ = intake()
    for _ in range(3):
        made.request_needed(2**70)
        made.push([1])
        made.take(1)
    assert upstream.requests == [UNBOUNDED]
    assert made.outstanding == UNBOUNDED


def test_without_demand_nothing_is_requested() -> None:
    """1.1; a cancelled island has a room of minus infinity."""
    made, upstream, _ = intake()
    made.request_needed(0)
    made.request_needed(float("-inf"))
    assert upstream.requests == []


@given(st.lists(st.integers(), max_size=20), st.integers(1, 6), st.booleans())
def test_the_end_follows_the_elements(elements: list[int], at_most: int, fails: bool) -> None:
    made, _, _ = intake()
    made.request_needed(100)
    made.push(list(elements))
    error = ValueError("over")
    if fails:
        made.fail(error)
    else:
        made.complete()
    seen: list[int] = []
    while len(seen) < len(elements):
        chunk = made.take(at_most)
        assert chunk
        seen += chunk
    assert seen == elements
    if not fails:
        assert made.take(at_most) is None
        return
    with pytest.raises(UpstreamFailed) as caught:
        made.take(at_most)
    assert caught.value.error is error


@pytest.mark.parametrize("error", [StopIteration(), StopAsyncIteration(), KeyboardInterrupt()])
def test_any_error_of_upstream_passes_through_the_loop_unchanged(error: BaseException) -> None:
    """A StopIteration would end a generator, and others end the program."""
    made, _, _ = intake()
    made.fail(error)
    with pytest.raises(UpstreamFailed) as caught:
        made.take(1)
    assert caught.value.error is error


def test_more_than_was_requested_fails_and_cancels_upstream_once() -> None:
    """1.1."""
    made, upstream, _ = intake()
    made.request_needed(1)
    made.push([1, 2])
    made.push([3])
    with pytest.raises(UpstreamFailed) as caught:
        made.take(9)
    assert isinstance(caught.value.error, RuleViolation)
    assert caught.value.error.rule == "1.1"
    made.close()
    assert upstream.cancelled == 1


def test_an_upstream_that_pushes_while_it_is_opened_is_cancelled() -> None:
    made: InputQueue[int] = InputQueue(Woken([]), UNBOUNDED)
    made.push([1])
    made.upstream = upstream = Upstream()
    made.close()
    assert upstream.cancelled == 1


def test_an_upstream_that_raises_in_request_fails_the_flow_and_is_cancelled() -> None:
    """3.16."""

    def wrong(n: int) -> None:
        raise ValueError(n)

    made: InputQueue[int] = InputQueue(Woken([]), UNBOUNDED)
    made.upstream = upstream = Upstream(on_request=wrong)
    with pytest.raises(ValueError, match="1") as raised:
        made.request_needed(1)
    made.upstream_raised(raised.value)
    with pytest.raises(UpstreamFailed):
        made.take(1)
    made.close()
    assert upstream.cancelled == 1


@pytest.mark.parametrize("how", ["complete", "fail", "nothing"])
def test_closing_cancels_an_upstream_that_has_not_ended(how: str) -> None:
    """3.13: and a late push does not wake the island."""
    made, upstream, wakes = intake()
    made.request_needed(3)
    if how == "complete":
        made.complete()
    elif how == "fail":
        made.fail(ValueError())
    assert made.close() is upstream
    assert upstream.cancelled == (how == "nothing")
    before = len(wakes)
    made.push([1])
    made.complete()
    made.fail(ValueError())
    made.request_needed(5)
    assert len(wakes) == before
    assert upstream.requests == [3]


def test_signals_after_the_end_change_nothing() -> None:
    """1.7; nor does the drain of the run."""
    made, upstream, wakes = intake()
    made.request_needed(5)
    made.complete()
    before = len(wakes)
    made.push([1])
    made.fail(ValueError())
    made.complete()
    made.stop_source()
    assert len(wakes) == before
    assert upstream.cancelled == 0
    assert made.take(5) is None


def test_an_upstream_that_pushes_inside_request_gets_one_request() -> None:
    """3.3."""
    made: InputQueue[int] = InputQueue(Woken([]), UNBOUNDED)

    def send(n: int) -> None:
        made.push(list(range(n)))

    made.upstream = upstream = Upstream(on_request=send)
    made.request_needed(4)
    assert made.take(9) == [0, 1, 2, 3]
    assert upstream.requests == [4]
