"""The operators that pass on some elements, by position or because they are new."""

from collections.abc import Callable
from typing import Any, cast

import pytest

import reactive_aio as r
from reactive_aio import Flow, from_iterable, just, never, range as flow_range
from reactive_aio.errors import Overflow
from reactive_aio.testing import SubscriberProbe
from tests.cases import Identities, Needs
from tests.harness.one_run import in_one_run
from tests.operators.ways import Failed, Sample, collected, in_every_way


def below_3(x: int) -> bool:
    if x == 99:
        raise Failed(x)
    return x < 3


SAMPLES = {
    "take: twice": Sample(lambda f: f.take(3).map(str).take(2), [1, 2, 3], ["1", "2", "|"]),
    "take_while: failing": Sample(lambda f: f.take_while(below_3), [1, 99], [1, Failed]),
    "take_while: inclusive": Sample(
        lambda f: f.take_while(below_3, inclusive=True), [1, 3, 4], [1, 3, "|"]
    ),
    "take_last: none": Sample(lambda f: f.take_last(0), [1, 2], ["|"]),
    "skip_while: failing": Sample(lambda f: f.skip_while(below_3), [1, 99], [Failed]),
    "skip_last: none": Sample(lambda f: f.skip_last(0), [1, 2], [1, 2, "|"]),
    "distinct": Sample(lambda f: f.distinct(), [1, 2, 1, 3, 2], [1, 2, 3, "|"]),
    "distinct: too many": Sample(lambda f: f.distinct(max_keys=2), [1, 2, 1, 3], [1, 2, Overflow]),
    "distinct: unhashable": Sample(lambda f: f.distinct(), [1, []], [1, TypeError]),
    "distinct: failing key": Sample(lambda f: f.distinct(below_3), [1, 99], [1, Failed]),
    "distinct_until_changed": Sample(
        lambda f: f.distinct_until_changed(), [1, 1, 2, 1], [1, 2, 1, "|"]
    ),
    "distinct_until_changed: key": Sample(
        lambda f: f.distinct_until_changed(below_3), [1, 2, 3, 1], [1, 3, 1, "|"]
    ),
}  # fmt: skip


def doubled(n: int) -> Flow[int]:
    return from_iterable([i for i in range(n) for _ in range(2)])


OF_LENGTH: dict[str, Callable[[int], Flow[Any]]] = {
    "take": lambda n: flow_range(n + 5).take(n),
    "take: pushed": lambda n: flow_range(n + 5).boundary(3).take(n),
    "take_while": lambda n: flow_range(n + 5).take_while(lambda x: x < n),
    "take_while: inclusive": lambda n: (
        flow_range(n + 5).take_while(lambda x: x + 1 < n, inclusive=True) if n else flow_range(0)
    ),
    "take_last": lambda n: flow_range(n + 5).take_last(n),
    "take_last: pushed": lambda n: flow_range(n + 5).boundary(3).take_last(n),
    "skip": lambda n: flow_range(n + 5).skip(5),
    "skip: pushed": lambda n: flow_range(n + 5).boundary(3).skip(5),
    "skip_while": lambda n: flow_range(n + 5).skip_while(lambda x: x < 5),
    "skip_last": lambda n: flow_range(n + 5).skip_last(5),
    "distinct": lambda n: doubled(n).distinct(),
    "distinct_until_changed": lambda n: doubled(n).distinct_until_changed(),
}

FAILING: dict[str, Callable[[], Flow[Any]]] = {
    "take_while": lambda: just(1, 99).take_while(below_3),
    "skip_while": lambda: just(1, 99).skip_while(below_3),
    "distinct: too many": lambda: flow_range(5).distinct(max_keys=2),
    "distinct: unhashable": lambda: just([1]).distinct(),
}

INFINITE: dict[str, Callable[[], Flow[Any]]] = {
    "skip": lambda: flow_range(1 << 62).skip(3),
    "skip_last": lambda: flow_range(1 << 62).skip_last(3),
    "distinct_until_changed": lambda: flow_range(1 << 62).distinct_until_changed(),
}

IDENTITIES: Identities = {
    "take": lambda up: up.take(1_000_000),
    "take_while": lambda up: up.take_while(lambda _: True),
    "skip": lambda up: up.skip(0),
    "skip_while": lambda up: up.skip_while(lambda _: False),
    "distinct": lambda up: up.distinct(),
    "distinct_until_changed": lambda up: up.distinct_until_changed(),
}
NO_IDENTITY = {
    "take_last": "no element is emitted before the end",
    "skip_last": "the last elements are never emitted",
}


@pytest.mark.parametrize("name", SAMPLES)
async def test_the_same_signals_in_every_way(name: str) -> None:
    await in_every_way(SAMPLES[name])


async def test_take_completes_with_its_last_element_and_cancels_upstream() -> None:
    ended: list[str] = []
    flow = flow_range(9).boundary(4).do_finally(ended.append).take(2)
    probe = SubscriberProbe[int](2).subscribed_to(flow)
    assert await probe.wait_for_signals(3) == [0, 1, "|"]  # rule 1.5: no third request is needed
    assert ended == ["cancelled"]


async def test_take_of_none_does_not_subscribe() -> None:
    subscribed: list[int] = []
    probe = SubscriberProbe[int]().subscribed_to(just(1).do_on_next(subscribed.append).take(0))
    assert probe.signals == ["|"]
    assert not never().take(0).chain.source.upstreams


async def test_take_last_emits_by_demand_at_the_end() -> None:
    probe = SubscriberProbe[int](1).subscribed_to(flow_range(40).take_last(30))
    assert probe.signals == [10]
    probe.request(28)
    assert probe.signals == list(range(10, 39))
    probe.request(1)
    assert probe.signals[-2:] == [39, "|"]


@pytest.mark.parametrize("requested", [1, 9, 20, 36, 37, 1000])
async def test_elements_left_out_use_no_demand(requested: int) -> None:
    probe = SubscriberProbe[int](requested).subscribed_to(flow_range(1000).skip(963))
    assert len(probe.elements) == min(requested, 37)


async def test_too_many_keys_name_the_remedy() -> None:
    *_, error = await collected(flow_range(4).distinct(max_keys=3), "unbounded")
    assert error.capacity == 3
    assert "max_keys" in str(error)
    assert "distinct_until_changed" in str(error)


@in_one_run
@pytest.mark.parametrize("boundary", [0, 256])
@pytest.mark.parametrize("demand", ["unbounded", "one by one", "async for"])
@pytest.mark.parametrize("limit", [1, 7, 8, 9, 64, 1500])
async def test_the_number_of_keys_is_exact(demand: str, limit: int, boundary: int) -> None:
    """In a batch, an element is not looked at by itself."""
    twice = flow_range(4 * limit).map(lambda x: x // 2)
    pushed = twice.boundary(boundary) if boundary else twice
    for flow in (pushed.distinct(max_keys=limit), pushed.distinct(str, max_keys=limit)):
        *found, error = await collected(flow, demand)
        assert found == [*range(limit)]
        assert isinstance(error, Overflow)


async def test_an_unhashable_element_fails_with_the_remedy() -> None:
    [error] = await collected(just({"a": 1}).distinct(), "unbounded")
    assert "dict" in str(error)
    assert "key" in str(error)


async def test_any_number_of_keys_is_allowed_with_max_keys_none() -> None:
    flow = flow_range(20_000).distinct(max_keys=None)
    assert len(await collected(flow, "unbounded")) == 20_001
    assert flow.bound().unbounded


def test_the_bound_counts_the_elements_held() -> None:
    flow = just(1)
    assert flow.take(2).take_while(bool).skip(2).skip_while(bool).bound().total == 0
    assert flow.take_last(3).bound().total == 3
    assert flow.skip_last(3).bound().total == 3
    assert flow.distinct().bound().total == 10_000
    assert flow.distinct(max_keys=7).bound().total == 7
    assert flow.distinct_until_changed().bound().total == 1


async def coroutine_function(_x: object) -> bool:
    return True


WRONG: dict[str, tuple[Callable[[Flow[int]], object], type[Exception], str]] = {
    "take": (lambda f: f.take(-1), ValueError, "take: count must be at least 0"),
    "take: bool": (lambda f: f.take(True), TypeError, "take: count must be an int"),
    "take_last": (lambda f: f.take_last(2.0), TypeError, "count"),  # type: ignore[arg-type]
    "skip": (lambda f: f.skip(-1), ValueError, "count"),
    "skip_last": (lambda f: f.skip_last(-1), ValueError, "count"),
    "take_while": (lambda f: f.take_while(coroutine_function), TypeError, "map_async"),
    "skip_while": (lambda f: f.skip_while(coroutine_function), TypeError, "map_async"),
    "distinct": (lambda f: f.distinct(max_keys=0), ValueError, "max_keys"),
    "distinct: key": (lambda f: f.distinct(cast("Any", coroutine_function)), TypeError, "key"),
    "distinct_until_changed": (
        lambda f: f.distinct_until_changed(coroutine_function), TypeError, "key",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_refused_at_assembly(name: str) -> None:
    assemble, error, message = WRONG[name]
    with pytest.raises(error, match=message):
        assemble(just(1))


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Keep some elements": {
        "the first ones": "take",
        "the last ones": "take_last",
        "as long as a condition holds": "take_while",
        "all but the first ones": "skip skip_while",
        "all but the last ones": "skip_last",
        "each only once": "distinct",
        "each change, without repetitions": "distinct_until_changed",
    },
}


async def example_take() -> None:
    print(await r.range(1_000_000).take(3).to_list())


async def example_take_while() -> None:
    print(await r.just(1, 4, 9, 2).take_while(lambda n: n < 5).to_list())


async def example_take_last() -> None:
    print(await r.range(10).take_last(2).to_list())


async def example_skip() -> None:
    rows = r.just("name,price", "tea,3", "milk,1").skip(1)
    print(await rows.to_list())


async def example_skip_while() -> None:
    body = r.just("# a", "# b", "text", "# c").skip_while(lambda line: line.startswith("#"))
    print(await body.to_list())


async def example_skip_last() -> None:
    body = r.just("tea", "milk", "(2 rows)").skip_last(1)
    print(await body.to_list())


async def example_distinct() -> None:
    people = r.just("Ada", "Alan", "ada", "Grace").distinct(str.lower)
    print(await people.to_list())


async def example_distinct_until_changed() -> None:
    states = r.just("up", "up", "down", "up").distinct_until_changed()
    print(await states.to_list())
