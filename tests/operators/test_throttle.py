"""debounce, throttle_first, throttle_latest and sample: which elements pass, and when."""

# Where a Publisher is expected of a lambda, pyright does not infer the types of these calls.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

import pytest

import reactive_aio as r
from reactive_aio import Flow, Publisher
from reactive_aio.testing import PublisherProbe, SubscriberProbe
from tests.cases import Needs
from tests.operators.streams import MANY
from tests.operators.ways import Failed

Thin = Callable[..., Flow[Any]]

NAMES = ("debounce", "throttle_first", "throttle_latest", "sample")


def operator(name: str) -> Thin:
    def thin(flow: Flow[Any], *arguments: Any, **options: Any) -> Flow[Any]:
        return cast("Flow[Any]", getattr(flow, name)(*arguments, **options))

    return thin


EACH: Mapping[str, Thin] = {name: operator(name) for name in NAMES}
EVERY = pytest.mark.parametrize("thin", EACH.values(), ids=EACH.keys())


def each_alone(thin: Thin) -> Callable[[int], Publisher[Any]]:
    """One element at a time, so that each of them passes."""

    def alone(x: int) -> Flow[Any]:
        return thin(r.just(x).concat_with(r.never()), 0.0005).take(1)

    return lambda n: r.range(n).flat_map(alone, concurrency=1)


def failing(thin: Thin) -> Publisher[Any]:
    return thin(r.error(Failed()), 0.0005)


OF_LENGTH: Mapping[str, Callable[[int], Publisher[Any]]] = {
    name: each_alone(thin) for name, thin in EACH.items()
}
FAILING: Mapping[str, Callable[[], Publisher[Any]]] = {
    name: partial(failing, thin) for name, thin in EACH.items()
}
NO_IDENTITY = dict.fromkeys(EACH, "it leaves out elements that follow each other too soon")


def now() -> float:
    return asyncio.get_running_loop().time()


class Typist:
    """Sends elements at given times through an operator, and notes when they arrive."""

    def __init__(self, thin: Thin, *, seconds: float = 3, demand: int = MANY) -> None:
        self.source = PublisherProbe[str]()
        self.seen: list[tuple[float, str]] = []
        self.dropped: list[str] = []
        flow = thin(r.from_publisher(self.source), seconds, on_drop=self.dropped.append)
        self.probe = SubscriberProbe[str](demand)
        self.probe.subscribed_to(flow.do_on_next(lambda x: self.seen.append((now(), x))))

    async def type(self, keys: Mapping[int, str]) -> None:
        for time, key in keys.items():
            await asyncio.sleep(time - now())
            self.source.emit(key)


KEYS = {0: "a", 1: "b", 2: "c", 7: "d", 8: "e"}


@pytest.mark.virtual_time
class TestWhen:
    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("debounce", [(5, "c"), (9.5, "e")]),
            ("throttle_first", [(0, "a"), (7, "d")]),
            ("throttle_latest", [(0, "a"), (3, "c"), (7, "d"), (9.5, "e")]),
            ("sample", [(3, "c"), (9, "e")]),
        ],
    )
    async def test_these_pass_and_the_others_are_dropped(
        self, name: str, expected: list[tuple[float, str]]
    ) -> None:
        typist = Typist(EACH[name])
        await typist.type(KEYS)
        await asyncio.sleep(1.5)
        typist.source.complete()
        await asyncio.sleep(50)
        assert typist.seen == expected
        assert sorted([*typist.dropped, *(key for _, key in expected)]) == list("abcde")
        assert typist.probe.signals[-1] == "|"

    @pytest.mark.parametrize(
        ("name", "expected"),
        [("debounce", [3]), ("throttle_first", [1]), ("throttle_latest", [1, 3]), ("sample", [])],
    )
    async def test_elements_that_arrive_together_come_one_after_the_other(
        self, name: str, expected: list[int]
    ) -> None:
        assert await EACH[name](r.just(1, 2, 3), 3).to_list() == expected

    async def test_sample_may_pass_on_the_last_element(self) -> None:
        typist = Typist(partial(EACH["sample"], emit_last=True))
        await typist.type(KEYS)
        typist.source.complete()
        await typist.probe.end()
        assert typist.seen == [(3, "c"), (8, "e")]
        assert typist.dropped == ["a", "b", "d"]
        assert await r.just(1, 2, 3).sample(3, emit_last=True).to_list() == [3]
        waiting = Typist(partial(EACH["sample"], emit_last=True), demand=0)
        waiting.probe.request(1)
        await waiting.type({10: "a", 14: "b"})
        waiting.source.complete()
        assert waiting.probe.signals == ["a"]
        waiting.probe.request(1)
        assert waiting.probe.signals == ["a", "b", "|"]

    async def test_the_quiet_time_may_be_that_of_each_element(self) -> None:
        quiet = {"a": 1.0, "b": 5.0, "c": 0.0, "d": 9.0, "e": 0.5}
        source = PublisherProbe[str]()
        seen: list[tuple[float, str]] = []
        flow = r.from_publisher(source).debounce(lambda key: quiet[key])
        probe = SubscriberProbe[str](MANY)
        probe.subscribed_to(flow.do_on_next(lambda x: seen.append((now(), x))))
        for time, key in {0: "a", 2: "b", 4: "c", 10: "d", 12: "e"}.items():
            await asyncio.sleep(time - now())
            source.emit(key)
        await asyncio.sleep(20)
        assert seen == [(1, "a"), (4, "c"), (12.5, "e")]
        probe.cancel()

    @pytest.mark.parametrize("wrong", [-1, "1", None, float("nan")])
    async def test_a_wrong_time_of_an_element_fails_the_flow(self, wrong: Any) -> None:
        with pytest.raises((TypeError, ValueError), match="debounce: the result of <lambda> must"):
            await r.just(1).debounce(lambda _: wrong).to_list()

    @EVERY
    async def test_an_error_passes_at_once(self, thin: Thin) -> None:
        typist = Typist(thin)
        await typist.type({0: "a", 1: "b"})
        typist.source.fail(Failed())
        await typist.probe.end()
        assert isinstance(typist.probe.error, Failed)
        assert now() == 1


@pytest.mark.virtual_time
class TestDemand:
    @EVERY
    async def test_the_source_is_read_without_regard_to_demand(self, thin: Thin) -> None:
        typist = Typist(thin, demand=1)
        for _ in range(600):
            typist.source.emit("a")
            await asyncio.sleep(0)
        assert typist.source.outstanding > 0
        assert typist.probe.error is None
        typist.probe.cancel()

    @pytest.mark.parametrize("name", ["debounce", "throttle_latest", "sample"])
    async def test_without_demand_the_latest_that_is_due_waits(self, name: str) -> None:
        typist = Typist(EACH[name], demand=1)
        await typist.type({0: "a", 10: "b", 20: "c", 21: "d"})
        await asyncio.sleep(29)
        assert [key for _, key in typist.seen] == ["a"]
        typist.probe.request(5)
        assert typist.seen[1:] == [(50, "d")]
        assert typist.dropped == ["b", "c"]
        typist.probe.cancel()

    async def test_throttle_first_drops_what_is_not_demanded(self) -> None:
        typist = Typist(EACH["throttle_first"], demand=1)
        await typist.type({0: "a", 10: "b"})
        typist.probe.request(1)
        await typist.type({20: "c"})
        assert typist.seen == [(0, "a"), (20, "c")]
        assert typist.dropped == ["b"]
        typist.probe.cancel()


class TestMistakes:
    @EVERY
    async def test_an_error_of_on_drop_fails_the_flow(self, thin: Thin) -> None:
        source = PublisherProbe[int]()
        for flow in (r.from_publisher(source), r.range(3)):
            thinned = thin(flow, 60, on_drop=lambda x: x // 0)
            probe = SubscriberProbe[int](MANY).subscribed_to(thinned)
            if source.subscribers:
                source.emit(1)
                source.emit(2)
                source.emit(3)
            await probe.end()
            assert isinstance(probe.error, ZeroDivisionError)
        assert source.cancel_count == 1

    @EVERY
    def test_durations_and_functions_are_checked(self, thin: Thin) -> None:
        with pytest.raises(ValueError, match="must be"):
            thin(r.just(1), 0)
        with pytest.raises(TypeError, match="on_drop"):
            thin(r.just(1), 1, on_drop=asyncio.sleep)


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Work by time": {
        "wait until the elements pause, as for typing": "debounce",
        "the first element of each period": "throttle_first",
        "the first at once, then the latest of each period": "throttle_latest",
        "the latest at each tick of a clock": "sample",
    },
}


async def example_debounce() -> None:
    typed = r.concat(["r", "re", "rea"], r.timer(0.3, "react"))
    print(await typed.debounce(0.1).to_list())


async def example_throttle_first() -> None:
    clicks = r.interval(0.04).take(7)
    print(await clicks.throttle_first(0.1).to_list())


async def example_throttle_latest() -> None:
    positions = r.interval(0.03).take(7)
    print(await positions.throttle_latest(0.1).to_list())


async def example_sample() -> None:
    temperatures = r.interval(0.03).take(7)
    print(await temperatures.sample(0.1).to_list())
