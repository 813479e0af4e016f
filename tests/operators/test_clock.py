"""timestamp and elapsed: the loop's time of each element."""

import asyncio
from collections.abc import Callable, Mapping

import pytest

import reactive_aio as r
from reactive_aio import Publisher
from tests.cases import Identities, Needs
from tests.operators.streams import slow
from tests.operators.ways import Failed

OF_LENGTH: Mapping[str, Callable[[int], Publisher[object]]] = {
    # Without the time, which differs from run to run.
    "timestamp": lambda n: r.range(n).timestamp().map(lambda pair: pair[1]),
    "elapsed": lambda n: r.range(n).elapsed().map(lambda pair: pair[1]),
}

FAILING: Mapping[str, Callable[[], Publisher[object]]] = {
    "timestamp": lambda: slow([1], error=Failed()).timestamp(),
    "elapsed": lambda: slow([1], error=Failed()).elapsed(),
}

INFINITE: Mapping[str, Callable[[], Publisher[object]]] = {
    "timestamp": lambda: r.generate(lambda x: (x, x + 1), 0).timestamp(),
    "elapsed": lambda: r.generate(lambda x: (x, x + 1), 0).elapsed(),
}

IDENTITIES: Identities = {
    "timestamp": lambda up: up.timestamp().map(lambda pair: pair[1]),
    "elapsed": lambda up: up.elapsed().map(lambda pair: pair[1]),
}


@pytest.mark.virtual_time
@pytest.mark.parametrize("way", ["to_list", "async for"])
async def test_each_element_has_its_time(way: str) -> None:
    flow = slow("abc", every=3).timestamp()
    found = await flow.to_list() if way == "to_list" else [each async for each in flow]
    assert found == [(3.0, "a"), (6.0, "b"), (9.0, "c")]


@pytest.mark.virtual_time
async def test_each_subscription_measures_from_its_beginning() -> None:
    flow = slow("ab", every=3).elapsed()
    for _ in range(2):
        assert await flow.to_list() == [(3.0, "a"), (3.0, "b")]


async def test_a_synchronous_flow_knows_the_time_as_well() -> None:
    pairs = [pair async for pair in r.range(3).elapsed()]
    assert [x for _, x in pairs] == [0, 1, 2]
    assert all(seconds >= 0 for seconds, _ in pairs)


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Work by time": {
        "know when an element came, or how long after the one before": "timestamp elapsed",
    },
}


async def example_timestamp() -> None:
    start = asyncio.get_running_loop().time()
    async for at, n in r.interval(0.1).take(2).timestamp():
        print(n, f"after {at - start:.1f} s")


async def example_elapsed() -> None:
    gaps = r.concat(r.timer(0.1, "a"), r.timer(0.2, "b")).elapsed()
    async for seconds, name in gaps:
        print(name, f"{seconds:.1f} s")
