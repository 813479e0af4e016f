"""start_with and default_if_empty."""

from collections.abc import Callable
from typing import Any

import pytest

from reactive_aio import Flow, empty, just, never, range as flow_range
from reactive_aio.errors import NotAnElement
from reactive_aio.testing import SubscriberProbe
from tests.cases import Identities
from tests.operators.ways import WAYS, Failed, Sample, in_every_way

SAMPLES = {
    "start_with": Sample(lambda f: f.start_with(8, 9), [1, 2], [8, 9, 1, 2, "|"]),
    "start_with: empty": Sample(lambda f: f.start_with(8), [], [8, "|"]),
    "start_with: nothing": Sample(lambda f: f.start_with(), [1], [1, "|"]),
    "start_with: failing": Sample(lambda f: f.start_with(8), [], [8, Failed], fails=True),
    "start_with: twice": Sample(lambda f: f.start_with(2).start_with(1), [3], [1, 2, 3, "|"]),
    "start_with: stages": Sample(
        lambda f: f.map(str).start_with("a").map(str.upper).take(2), [1, 2], ["A", "1", "|"]
    ),
    "default_if_empty": Sample(lambda f: f.default_if_empty(7), [], [7, "|"]),
    "default_if_empty: not": Sample(lambda f: f.default_if_empty(7), [1], [1, "|"]),
    "default_if_empty: filtered": Sample(
        lambda f: f.filter(lambda x: x > 5).default_if_empty(7), [1, 2], [7, "|"]
    ),
    "default_if_empty: failing": Sample(
        lambda f: f.default_if_empty(7), [], [Failed], fails=True
    ),
}  # fmt: skip

OF_LENGTH: dict[str, Callable[[int], Flow[Any]]] = {
    "start_with": lambda n: flow_range(n - n // 2).start_with(*range(n // 2)),
    "start_with: pushed": lambda n: flow_range(n - n // 2).boundary(2).start_with(*range(n // 2)),
    "default_if_empty": lambda n: flow_range(n).default_if_empty(0) if n else empty(),
    "default_if_empty: empty": lambda n: (
        flow_range(3).start_with(*range(n)).skip(3).default_if_empty(0) if n else empty()
    ),
}

FAILING: dict[str, Callable[[], Flow[Any]]] = {
    "start_with": lambda: just(0).map(lambda x: 1 / x).start_with(1),
    "default_if_empty": lambda: just(0).map(lambda x: 1 / x).default_if_empty(1),
}

INFINITE: dict[str, Callable[[], Flow[Any]]] = {
    "start_with": lambda: flow_range(1 << 62).start_with(1, 2),
    "default_if_empty": lambda: flow_range(1 << 62).default_if_empty(1),
}

IDENTITIES: Identities = {
    "start_with": lambda up: up.start_with(),
    "default_if_empty": lambda up: up.default_if_empty(-1).filter(lambda x: x != -1),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", SAMPLES)
async def test_the_same_signals_in_every_way(name: str, way: str) -> None:
    await in_every_way(SAMPLES[name], way)


async def test_the_first_elements_do_not_wait_for_the_source() -> None:
    probe = SubscriberProbe[object](2).subscribed_to(never().start_with("a", "b", "c"))
    assert probe.signals == ["a", "b"]
    probe.request(2)
    assert probe.signals == ["a", "b", "c"]
    probe.cancel()


async def test_nothing_is_emitted_without_demand() -> None:
    probe = SubscriberProbe[object]().subscribed_to(empty().start_with("a"))
    assert probe.signals == []
    probe.request(1)
    assert probe.signals == ["a", "|"]
    probe = SubscriberProbe[object]().subscribed_to(empty().default_if_empty("a"))
    assert probe.signals == []
    probe.request(1)
    assert probe.signals == ["a", "|"]


def test_none_is_refused() -> None:
    with pytest.raises(NotAnElement, match="start_with"):
        just(1).start_with(2, None)
    with pytest.raises(NotAnElement, match="default_if_empty"):
        just(1).default_if_empty(None)


def test_nothing_is_held() -> None:
    assert just(1).start_with(1, 2).default_if_empty(2).bound().total == 0
