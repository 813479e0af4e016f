"""buffer, buffer_until and sliding_window."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import given, strategies as st

import reactive_aio as r
from reactive_aio import Flow, just, range as flow_range
from reactive_aio.errors import Overflow
from reactive_aio.testing import SubscriberProbe
from tests.cases import Identities, Needs
from tests.harness.one_run import in_one_run
from tests.operators.ways import Failed, Sample, collected, in_every_way

SAMPLES = {
    "buffer": Sample(lambda f: f.buffer(2), [1, 2, 3], [[1, 2], [3], "|"]),
    "buffer: failing": Sample(lambda f: f.buffer(2), [1, 2, 3], [[1, 2], Failed], fails=True),
    "buffer: overlapping": Sample(
        lambda f: f.buffer(3, step=2), [1, 2, 3, 4, 5], [[1, 2, 3], [3, 4, 5], [5], "|"]
    ),
    "buffer_until": Sample(
        lambda f: f.buffer_until(lambda x: x % 2 == 0), [1, 2, 4, 3], [[1, 2], [4], [3], "|"]
    ),
    "buffer_until: failing": Sample(
        lambda f: f.buffer_until(lambda x: x == 2), [1, 2, 3], [[1, 2], Failed], fails=True
    ),
    "sliding_window": Sample(lambda f: f.sliding_window(2), [1, 2, 3], [(1, 2), (2, 3), "|"]),
    "sliding_window: failing": Sample(
        lambda f: f.sliding_window(2), [1, 2], [(1, 2), Failed], fails=True
    ),
}

OF_LENGTH: dict[str, Callable[[int], Flow[Any]]] = {
    "buffer": lambda n: flow_range(3 * n).buffer(3),
    "buffer_until": lambda n: flow_range(3 * n).buffer_until(lambda x: x % 3 == 2),
    "buffer: rest": lambda n: flow_range(max(3 * n - 2, 0)).buffer(3),
    "buffer: pushed": lambda n: flow_range(3 * n).boundary(4).buffer(3),
    "buffer: step": lambda n: flow_range(2 * n).buffer(3, step=2),
    "sliding_window": lambda n: flow_range(n + 2 if n else 0).sliding_window(3),
    "sliding_window: partial": lambda n: flow_range(n).sliding_window(3, partial=True),
    "sliding_window: pushed": lambda n: flow_range(n + 1).boundary(4).sliding_window(2),
}

FAILING: dict[str, Callable[[], Flow[Any]]] = {
    "buffer": lambda: just(1, 0).map(lambda x: 1 / x).buffer(1),
    "buffer_until": lambda: just(1, 0).map(lambda x: 1 / x).buffer_until(bool),
    "sliding_window": lambda: just(1, 0).map(lambda x: 1 / x).sliding_window(1),
}

INFINITE: dict[str, Callable[[], Flow[Any]]] = {
    "buffer": lambda: flow_range(1 << 62).buffer(3),
    "buffer_until": lambda: flow_range(1 << 62).buffer_until(lambda x: x % 3 == 0),
    "sliding_window": lambda: flow_range(1 << 62).sliding_window(3),
}

IDENTITIES: Identities = {
    "buffer": lambda up: up.buffer(1).map(lambda chunk: chunk[0]),
    "buffer_until": lambda up: up.buffer_until(lambda _: True).map(lambda chunk: chunk[0]),
    "sliding_window": lambda up: up.sliding_window(1).map(lambda chunk: chunk[0]),
}


@pytest.mark.parametrize("name", SAMPLES)
async def test_the_same_signals_in_every_way(name: str) -> None:
    await in_every_way(SAMPLES[name])


@given(length=st.integers(0, 20), size=st.integers(1, 6), step=st.integers(1, 6))
async def test_windows_are_slices(length: int, size: int, step: int) -> None:
    elements = list(range(length))
    starts = range(0, length, step)
    every = [elements[start : start + size] for start in starts]
    full = [tuple(each) for each in every if len(each) == size]
    flow = flow_range(length)
    assert await collected(flow.buffer(size, step=step), "unbounded") == [*every, "|"]
    windows = flow.sliding_window(size, step=step)
    assert await collected(windows, "one by one") == [*full, "|"]
    windows = flow.sliding_window(size, step=step, partial=True)
    assert await collected(windows, "one by one") == [*map(tuple, every), "|"]


async def test_a_full_buffer_completes_with_a_source_that_knows_its_end() -> None:
    probe = SubscriberProbe[list[int]](2).subscribed_to(flow_range(4).buffer(2))
    assert probe.signals == [[0, 1], [2, 3], "|"]


async def test_the_rest_waits_for_demand() -> None:
    probe = SubscriberProbe[list[int]](1).subscribed_to(flow_range(3).buffer(2))
    assert probe.signals == [[0, 1]]
    probe.request(1)
    assert probe.signals == [[0, 1], [2], "|"]


async def test_every_buffer_is_a_new_list() -> None:
    one, two, *_ = await collected(flow_range(4).buffer(2), "unbounded")
    one.append("changed")
    assert two == [2, 3]


@pytest.mark.parametrize("size", [1, 3, 7])
async def test_no_more_is_requested_than_the_requested_lists_need(size: int) -> None:
    asked: list[int] = []
    source = flow_range(100).do_on_request(asked.append).boundary(50).do_on_next(lambda _: None)
    probe = SubscriberProbe[list[int]](2).subscribed_to(source.buffer(size))
    await probe.wait_for_signals(2)
    assert probe.elements == [list(range(size)), list(range(size, 2 * size))]
    assert source.buffer(size).bound().total == 50 + size


def test_the_bound_counts_the_elements_held() -> None:
    assert just(1).buffer(7).bound().total == 7
    assert just(1).buffer(7, step=2).bound().total == 7
    assert just(1).sliding_window(5).bound().total == 5


WRONG: dict[str, tuple[Callable[[Flow[int]], object], type[Exception], str]] = {
    "buffer": (lambda f: f.buffer(0), ValueError, "buffer: size must be at least 1"),
    "buffer: step": (lambda f: f.buffer(2, step=0), ValueError, "step"),
    "sliding_window": (lambda f: f.sliding_window(0), ValueError, "size"),
    "sliding_window: step": (lambda f: f.sliding_window(1, step=0), ValueError, "step"),
    "buffer_until": (lambda f: f.buffer_until(cast("Any", 1)), TypeError, "buffer_until"),
    "buffer_until: limit": (
        lambda f: f.buffer_until(bool, limit=0),
        ValueError,
        "buffer_until: limit must be at least 1",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_refused_at_assembly(name: str) -> None:
    assemble, error, message = WRONG[name]
    with pytest.raises(error, match=message):
        assemble(just(1))


async def test_a_list_that_does_not_end_fails_by_name_and_the_ones_before_it_arrive() -> None:
    flow = flow_range(9).buffer_until(lambda x: x == 1, limit=3)
    probe = SubscriberProbe[list[int]](9).subscribed_to(flow)
    await probe.end()
    assert probe.elements == [[0, 1]]
    assert isinstance(probe.error, Overflow)
    assert "buffer_until" in str(probe.error)


async def test_a_list_of_the_limit_may_end() -> None:
    flow = flow_range(6).buffer_until(lambda x: x % 3 == 2, limit=3)
    assert await flow.to_list() == [[0, 1, 2], [3, 4, 5]]


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Batches and windows": {
        "lists of n elements": "buffer",
        "lists that end with a certain element": "buffer_until",
        "overlapping windows, as for a moving average": "sliding_window",
    },
}


async def example_buffer() -> None:
    print(await r.range(5).buffer(2).to_list())


async def example_buffer_until() -> None:
    words = r.just("To", "be.", "Or", "not.")
    print(await words.buffer_until(lambda word: word.endswith(".")).to_list())


async def example_sliding_window() -> None:
    means = r.just(1, 2, 6, 4).sliding_window(3).map(lambda window: sum(window) / 3)
    print(await means.to_list())


FEEDS: dict[str, Callable[[int], Flow[int]]] = {
    "pulled": flow_range,
    "pushed": lambda n: flow_range(n).boundary(256),
    "split": lambda n: flow_range(n).flat_map(lambda x: [x]),
}


@in_one_run
@pytest.mark.parametrize("feed", FEEDS.values(), ids=FEEDS)
@pytest.mark.parametrize("demand", ["unbounded", "one by one", "async for"])
@pytest.mark.parametrize("limit", [1, 7, 8, 9, 64, 1500])
async def test_the_limit_of_a_list_is_exact(
    feed: Callable[[int], Flow[int]], demand: str, limit: int
) -> None:
    """In a batch, an element is not looked at by itself."""
    looked_at: list[int] = []

    def ends(x: int) -> bool:
        looked_at.append(x)
        return x % limit == limit - 1 and x < 3 * limit

    flow = feed(5 * limit).buffer_until(ends, limit=limit)
    *lists, error = await collected(flow, demand)
    assert [len(each) for each in lists] == [limit] * 3
    assert isinstance(error, Overflow)
    assert looked_at == [*range(4 * limit)]
