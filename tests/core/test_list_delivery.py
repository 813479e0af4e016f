"""The lists of a window or a group, appended to the operator that reads it."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio._core.compiler.chain import Chain, PushSource
from reactive_aio._core.compiler.discards import OnDiscard
from reactive_aio._core.subscription.bulk_subscriber import BulkSubscriber
from reactive_aio._core.subscription.list_delivery import ListDelivery
from reactive_aio.errors import AlreadySubscribed, Interrupted, RuleViolation
from reactive_aio.stage import FlowSubscription
from reactive_aio.testing import PublisherProbe, SubscriberProbe

Split = Callable[[Flow[int]], Flow[Flow[int]]]
SPLIT: dict[str, Split] = {
    "window": lambda flow: flow.window(9),
    "group_by": lambda flow: flow.group_by(lambda _: "all"),
}


class Reader(BulkSubscriber):
    """Notes its signals; *act* runs in on_subscribe."""

    def __init__(self, act: Callable[[Any], object] = lambda _: None) -> None:
        self.signals: list[object] = []
        self.discarded: list[object] = []
        self._act = act

    @property
    def container(self) -> list[Any]:
        return self.signals

    @property
    def on_discard(self) -> OnDiscard:
        return self.discarded.append

    def flush(self) -> None: ...

    def on_subscribe(self, subscription: Any, /) -> None:
        self._act(subscription)

    def on_complete(self) -> None:
        self.signals.append("|")

    def on_error(self, error: BaseException, /) -> None:
        self.signals.append(type(error))


class Source(FlowSubscription):
    """Notes its calls; *act* runs when it is opened."""

    def __init__(self, act: Callable[[Any], object] = lambda _: None) -> None:
        self.told: list[str] = []
        self._act = act

    def opened(self, downstream: Any) -> "Source":
        self.told.append("opened")
        self._act(downstream)
        return self

    def request(self, n: int, /) -> None:
        self.told.append(f"request({n})")

    def cancel(self) -> None:
        self.told.append("cancel()")


def delivered(source: Source, reader: Reader) -> ListDelivery[Any]:
    return ListDelivery(Chain(PushSource("lists", source.opened)), reader)


@pytest.fixture(params=[*SPLIT.values()], ids=[*SPLIT])
def split(request: pytest.FixtureRequest) -> Split:
    parameter: Split = request.param
    return parameter


async def read_by_flat_map(split: Split) -> tuple[PublisherProbe[int], Any, list[Flow[int]]]:
    source, parts = PublisherProbe[int](), list[Flow[int]]()

    def opened(part: Flow[int]) -> Flow[int]:
        parts.append(part)
        return part

    probe = SubscriberProbe[int](2).subscribed_to(
        split(r.from_publisher(source)).flat_map(opened, prefetch=3)
    )
    while not source.outstanding:  # noqa: ASYNC110 - turn by turn
        await asyncio.sleep(0)
    source.emit(0)
    await probe.wait_for_signals(1)
    return source, probe, parts


@pytest.mark.parametrize("kind", ["bare", "mapped"])
async def test_a_flow_without_stages_needs_no_island(
    split: Split, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[ListDelivery[Any]] = []
    begin = ListDelivery[Any].begin

    def noted(delivery: ListDelivery[Any]) -> None:
        begun.append(delivery)
        begin(delivery)

    def mapper(part: Flow[int]) -> Flow[int]:
        return part if kind == "bare" else part.map(lambda x: x)

    monkeypatch.setattr(ListDelivery, "begin", noted)
    assert await split(r.range(9).boundary(9)).flat_map(mapper).to_list() == [*range(9)]
    assert len(begun) == (kind == "bare")


async def test_another_subscriber_is_refused_rule_1_11(split: Split) -> None:
    _, _, parts = await read_by_flat_map(split)
    again = r.merge(parts[0], r.never())
    with pytest.raises(AlreadySubscribed, match=r"rule 1\.11"):
        await again.to_list()


async def test_it_receives_no_more_than_it_requests(split: Split) -> None:
    source, probe, _ = await read_by_flat_map(split)
    source.emit(*range(1, 8))
    await probe.wait_for_signals(2)
    assert probe.elements == [0, 1]
    probe.request(9)
    await probe.wait_for_signals(8)
    source.complete()
    await probe.end()
    assert probe.elements == [*range(8)]
    assert probe.is_completed


async def test_an_error_names_the_part(split: Split) -> None:
    source, probe, _ = await read_by_flat_map(split)
    probe.request(9)
    error = OSError("gone")
    source.fail(error)
    await probe.end()
    assert probe.error is error
    assert any("of " in note for note in error.__notes__)


async def test_cancelling_what_reads_it_cancels_the_source(split: Split) -> None:
    source, probe, _ = await read_by_flat_map(split)
    probe.cancel()
    await asyncio.sleep(0)
    assert source.cancel_count == 1


# -- its guards ------------------------------------------------------------------------------------
def test_a_source_is_not_opened_after_a_cancellation_in_on_subscribe() -> None:
    source, reader = Source(), Reader(lambda subscription: subscription.cancel())
    delivered(source, reader).begin()
    assert (source.told, reader.signals) == ([], [])


def test_a_source_that_ends_while_it_is_opened_is_not_requested_and_may_clean_up() -> None:
    source = Source(lambda downstream: downstream.complete())
    reader = Reader(lambda subscription: subscription.request(1))
    delivery = delivered(source, reader)
    delivery.begin()
    assert (source.told, reader.signals) == (["opened"], ["|"])
    assert delivery.closing == (source,)
    delivery.push([1])
    assert (reader.signals, reader.discarded) == (["|"], [1])


def test_more_than_was_requested_fails_it_and_what_follows_is_given_back() -> None:
    """1.1, 1.7."""
    source, reader = Source(), Reader(lambda subscription: subscription.request(2))
    delivery = delivered(source, reader)
    delivery.begin()
    delivery.push([1])
    delivery.push([2, 3])
    delivery.push([4])
    assert reader.signals == [1, RuleViolation]
    assert reader.discarded == [2, 3, 4]
    assert source.told == ["opened", "request(2)", "cancel()"]


def test_a_program_stopping_error_is_raised_and_received() -> None:
    def stops(_: object) -> None:
        raise SystemExit(3)

    reader = Reader()
    with pytest.raises(SystemExit):
        delivered(Source(stops), reader).begin()
    assert reader.signals == [Interrupted]
