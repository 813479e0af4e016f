"""The operators that map elements, leave them out, or add some."""

import operator
from collections.abc import AsyncIterator, Callable, Iterator
from operator import add
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import (
    Flow,
    defer,
    empty,
    error,
    from_aiter,
    from_iterable,
    just,
    never,
    range as flow_range,
)
from reactive_aio.errors import NotAnElement
from reactive_aio.testing import SubscriberProbe
from tests.cases import Identities, Needs
from tests.operators.ways import UNBOUNDED, Failed, Sample, collected, in_every_way


def fails_at_2(x: int) -> int:
    if x == 2:
        raise Failed(x)
    return x


def odd_or_none(x: int) -> int | None:
    return x if x % 2 else None


def no_result(_total: Any, _x: Any) -> Any:
    return None


async def coroutine_function(x: int) -> int:
    return x


SAMPLES = {
    "map": Sample(lambda f: f.map(str), [1, 2, 3], ["1", "2", "3", "|"]),
    "map: None": Sample(lambda f: f.map(odd_or_none), [1, 2], [1, NotAnElement]),
    "filter": Sample(lambda f: f.filter(odd_or_none), [1, 2, 3, 4], [1, 3, "|"]),
    "filter: failing function": Sample(lambda f: f.filter(fails_at_2), [1, 2], [1, Failed]),
    "filter_map: falsy": Sample(lambda f: f.filter_map(lambda x: x - 1), [1, 2], [0, 1, "|"]),
    "filter_map: failing": Sample(lambda f: f.filter_map(fails_at_2), [1, 2], [1, Failed]),
    "of_type": Sample(lambda f: f.of_type(int), ["a", 1, 2.0, True], [1, True, "|"]),
    "scan": Sample(lambda f: f.scan(add), [1, 2, 3], [1, 3, 6, "|"]),
    "scan: seed": Sample(lambda f: f.scan(add, seed=5), [1, 2], [5, 6, 8, "|"]),
    "scan: None": Sample(lambda f: f.scan(no_result), [1, 2], [1, NotAnElement]),
    "scan: seed, None": Sample(lambda f: f.scan(no_result, seed=1), [1], [1, NotAnElement]),
    "enumerate": Sample(lambda f: f.enumerate(), ["a", "b"], [(0, "a"), (1, "b"), "|"]),
    "enumerate: start": Sample(lambda f: f.enumerate(7), ["a", "b"], [(7, "a"), (8, "b"), "|"]),
    "pairwise": Sample(lambda f: f.pairwise(), [1, 2, 3], [(1, 2), (2, 3), "|"]),
    "start_with": Sample(lambda f: f.start_with(8, 9), [1, 2], [8, 9, 1, 2, "|"]),
    "start_with: twice": Sample(lambda f: f.start_with(2).start_with(1), [3], [1, 2, 3, "|"]),
    "start_with: stages": Sample(
        lambda f: f.map(str).start_with("a").map(str.upper).take(2), [1, 2], ["A", "1", "|"]
    ),
    "default_if_empty: after the end": Sample(
        lambda f: f.take_last(1).default_if_empty(7), [1, 2], [2, "|"]
    ),
    "default_if_empty: before the beginning": Sample(
        lambda f: f.start_with(1).default_if_empty(7), [], [1, "|"]
    ),
    "default_if_empty: filtered": Sample(
        lambda f: f.filter(lambda x: x > 5).default_if_empty(7), [1, 2], [7, "|"]
    ),
}  # fmt: skip

OF_LENGTH: dict[str, Callable[[int], Flow[Any]]] = {
    "map": lambda n: flow_range(n).map(str),
    "map: pushed": lambda n: flow_range(n).boundary(3).map(str),
    "filter": lambda n: flow_range(2 * n).filter(lambda x: x % 2),
    "filter: pushed": lambda n: flow_range(2 * n).boundary(3).filter(lambda x: x % 2),
    "filter_map": lambda n: flow_range(2 * n).filter_map(odd_or_none),
    "of_type": lambda n: from_iterable([each for i in range(n) for each in (i, "x")]).of_type(int),
    "scan": lambda n: flow_range(n).scan(add),
    "scan: seed": lambda n: flow_range(n - 1).scan(add, seed=0) if n else flow_range(0),
    "enumerate": lambda n: flow_range(n).enumerate(),
    "pairwise": lambda n: flow_range(n + 1).pairwise(),
    "transform": lambda n: flow_range(n).transform(lambda flow: flow.map(str)),
    "start_with": lambda n: flow_range(n - n // 2).start_with(*range(n // 2)),
    "start_with: pushed": lambda n: flow_range(n - n // 2).boundary(2).start_with(*range(n // 2)),
    "default_if_empty": lambda n: flow_range(n).default_if_empty(0) if n else empty(),
    "default_if_empty: empty": lambda n: (
        flow_range(3).start_with(*range(n)).skip(3).default_if_empty(0) if n else empty()
    ),
}

FAILING: dict[str, Callable[[], Flow[Any]]] = {
    "map": lambda: flow_range(5).map(fails_at_2),
    "filter": lambda: flow_range(5).filter(fails_at_2),
    "filter_map": lambda: flow_range(5).filter_map(fails_at_2),
    "scan": lambda: flow_range(5).scan(lambda _, x: fails_at_2(x)),
    "start_with": lambda: just(0).map(lambda x: 1 / x).start_with(1),
    "default_if_empty": lambda: just(0).map(lambda x: 1 / x).default_if_empty(1),
}

INFINITE: dict[str, Callable[[], Flow[Any]]] = {
    "map": lambda: flow_range(1 << 62).map(str),
    "filter": lambda: flow_range(1 << 62).filter(lambda x: x % 2),
    "scan": lambda: flow_range(1 << 62).scan(add),
    "pairwise": lambda: flow_range(1 << 62).pairwise(),
    "start_with": lambda: flow_range(1 << 62).start_with(1, 2),
    "default_if_empty": lambda: flow_range(1 << 62).default_if_empty(1),
}

IDENTITIES: Identities = {
    "map": lambda up: up.map(lambda x: x),
    "filter": lambda up: up.filter(lambda _: True),
    "filter_map": lambda up: up.filter_map(lambda x: x),
    "of_type": lambda up: up.of_type(object),
    "scan": lambda up: up.scan(lambda _, new: new),
    "enumerate": lambda up: up.enumerate().map(lambda pair: pair[1]),
    "transform": lambda up: up.transform(lambda flow: flow.map(lambda x: x)),
    "start_with": lambda up: up.start_with(),
    "default_if_empty": lambda up: up.default_if_empty(-1).filter(lambda x: x != -1),
}
NO_IDENTITY = {
    "pairwise": "each element is emitted twice",
}


@pytest.mark.parametrize("name", SAMPLES)
async def test_the_same_signals_in_every_way(name: str) -> None:
    await in_every_way(SAMPLES[name])


async def test_map_names_filter_map_when_the_mapper_returns_none() -> None:
    [error] = await collected(just(2).map(odd_or_none), "unbounded")
    assert "filter_map" in str(error)


async def test_a_seed_is_emitted_before_anything_is_requested_of_the_source() -> None:
    asked: list[int] = []
    flow = flow_range(3).do_on_request(asked.append).boundary(2).scan(add, seed=10)
    probe = SubscriberProbe[int](1).subscribed_to(flow)
    assert probe.signals == [10]
    assert asked == []
    probe.request(UNBOUNDED)
    assert await probe.end() == [10, 10, 11, 13, "|"]


async def test_each_subscription_scans_and_numbers_from_the_start() -> None:
    flow = flow_range(3).scan(add).enumerate()
    first = await collected(flow, "unbounded")
    assert first == await collected(flow, "async for") == [(0, 0), (1, 1), (2, 3), "|"]


async def test_the_first_elements_do_not_wait_for_the_source() -> None:
    probe = SubscriberProbe[object](2).subscribed_to(never().start_with("a", "b", "c"))
    assert probe.signals == ["a", "b"]
    probe.request(2)
    assert probe.signals == ["a", "b", "c"]
    probe.cancel()


class FailsToOpen:
    def __iter__(self) -> Iterator[int]:
        raise Failed

    def __aiter__(self) -> AsyncIterator[int]:
        raise Failed


def fails() -> Flow[int]:
    raise Failed


NOT_OPENED: dict[str, Callable[[], Flow[int]]] = {
    "error": lambda: error(Failed()),
    "from_iterable": lambda: from_iterable(FailsToOpen()),
    "from_aiter": lambda: from_aiter(FailsToOpen()),
    "defer": lambda: defer(fails),
}


@pytest.mark.parametrize("ends", [False, True], ids=["", "with an end hook"])
@pytest.mark.parametrize("source", NOT_OPENED)
async def test_the_first_elements_precede_the_error_of_a_source_that_does_not_open(
    source: str, ends: bool
) -> None:
    for flow in (
        NOT_OPENED[source]().start_with(1),
        NOT_OPENED[source]().scan(add, seed=1),
        NOT_OPENED[source]().map(str).start_with("x").map(lambda _: 1),
    ):
        log: list[str] = []
        changed = flow.do_finally(log.append) if ends else flow
        probe = SubscriberProbe[int](9).subscribed_to(changed)
        assert [type(signal) for signal in await probe.end()] == [int, Failed]
        elements = aiter(changed)
        assert await anext(elements) == 1
        with pytest.raises(Failed):
            await anext(elements)
        assert log == ["failed", "failed"] * ends


async def test_nothing_is_emitted_without_demand() -> None:
    probe = SubscriberProbe[object]().subscribed_to(empty().start_with("a"))
    assert probe.signals == []
    probe.request(1)
    assert probe.signals == ["a", "|"]
    probe = SubscriberProbe[object]().subscribed_to(empty().default_if_empty("a"))
    assert probe.signals == []
    probe.request(1)
    assert probe.signals == ["a", "|"]


def test_none_is_not_added() -> None:
    with pytest.raises(NotAnElement, match="start_with"):
        just(1).start_with(2, None)
    with pytest.raises(NotAnElement, match="default_if_empty"):
        just(1).default_if_empty(None)


def test_added_elements_are_not_held() -> None:
    assert just(1).start_with(1, 2).default_if_empty(2).bound().total == 0


def test_transform_returns_the_result_of_the_function() -> None:
    assert just(1).transform(lambda flow: flow.bound().total) == 0


def test_the_bound_counts_the_elements_held() -> None:
    flow = just(1)
    assert flow.map(str).filter(bool).enumerate().of_type(int).bound().total == 0
    assert flow.scan(add).bound().total == 1
    assert flow.scan(add, seed=1).bound().total == 1
    assert flow.pairwise().bound().total == 1


WRONG: dict[str, tuple[Callable[[Flow[int]], object], type[Exception], str]] = {
    "map": (lambda f: f.map(3), TypeError, "mapper must be a function"),  # type: ignore[arg-type]
    "filter": (lambda f: f.filter(coroutine_function), TypeError, "filter_async"),
    "filter_map": (lambda f: f.filter_map(coroutine_function), TypeError, "map_async"),
    "of_type": (lambda f: f.of_type("int"), TypeError, "kind"),  # type: ignore[arg-type]
    "scan": (lambda f: f.scan(None), TypeError, "accumulator"),  # type: ignore[call-overload]
    "scan: None": (lambda f: f.scan(no_result, seed=None), NotAnElement, "seed"),
    "enumerate": (lambda f: f.enumerate("1"), TypeError, "start"),  # type: ignore[arg-type]
    "transform": (lambda f: f.transform(1), TypeError, "change"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_refused_at_assembly(name: str) -> None:
    assemble, error, message = WRONG[name]
    with pytest.raises(error, match=message):
        assemble(just(1))


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Change each element": {
        "into the result of a plain function": "map",
        "or leave it out, in one function": "filter_map",
        "with its number": "enumerate",
        "with the one before it": "pairwise",
        "into a running total or another running result": "scan",
        "with an operator of my own, made of others": "transform",
    },
    "Keep some elements": {
        "for which a function, or a coroutine function, is true": "filter filter_async",
        "of one type": "of_type",
    },
    "Combine flows": {
        "some elements first": "start_with",
    },
}


async def example_map() -> None:
    words = r.just("tea", "milk").map(str.upper)
    print(await words.to_list())


async def example_filter() -> None:
    even = r.range(10).filter(lambda n: n % 2 == 0)
    print(await even.to_list())


async def example_filter_map() -> None:
    prices = {"tea": 3, "milk": 1}
    found = r.just("tea", "salt", "milk").filter_map(prices.get)
    print(await found.to_list())


async def example_of_type() -> None:
    numbers = r.just("a", 1, "b", 2).of_type(int)
    print(await numbers.to_list())


async def example_scan() -> None:
    balances = r.just(100, -30, 50).scan(operator.add)
    print(await balances.to_list())


async def example_enumerate() -> None:
    async for number, name in r.just("Ada", "Alan").enumerate(1):
        print(number, name)


async def example_pairwise() -> None:
    steps = r.just(3, 5, 4).pairwise().map(lambda pair: pair[1] - pair[0])
    print(await steps.to_list())


async def example_start_with() -> None:
    table = r.just("tea,3", "milk,1").start_with("name,price")
    print(await table.to_list())


async def example_default_if_empty() -> None:
    found = r.just(1, 2).filter(lambda n: n > 5).default_if_empty(0)
    print(await found.to_list())


async def example_transform() -> None:
    def cleaned(lines: r.Flow[str]) -> r.Flow[str]:
        return lines.map(str.strip).filter(bool)

    print(await r.just(" a ", "", "b ").transform(cleaned).to_list())


async def test_enumerate_refuses_none_of_a_source() -> None:
    """Its loop pulls pairs."""
    elements: list[Any] = ["a", None]
    probe = SubscriberProbe[Any](2**63 - 1).subscribed_to(r.from_iterable(elements).enumerate())
    assert probe.elements == [(0, "a")]
    assert isinstance(probe.error, NotAnElement)
