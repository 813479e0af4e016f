"""Every callback runs in the context in which the subscriber subscribed, whatever its cause."""

import asyncio
import contextvars
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from reactive_aio import Flow, from_iterable, from_thread, interval, merge
from reactive_aio.stage import from_async, from_pull
from tests.contract.subscribers import SHAPES, Acting, AsyncActing, Source, turns

Shape = Callable[[Source], Flow[int]]
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())

WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="unset")


def who(seen: list[str]) -> Callable[[Any], Any]:
    def look(x: Any) -> Any:
        seen.append(WHO.get())
        return x

    return look


@every_shape
@pytest.mark.parametrize("kind", [Acting, AsyncActing])
async def test_every_callback_runs_in_the_context_of_the_subscriber(
    shape: Shape, kind: type[Acting]
) -> None:
    """Whatever requests, from any thread: the values are those of subscribe()."""
    seen: list[str] = []

    def note(_: Acting) -> None:
        seen.append(WHO.get())

    async def look_async(x: int) -> int:
        seen.append(WHO.get())
        await asyncio.sleep(0)
        seen.append(WHO.get())
        return x

    subscriber = kind(on_subscribe=note, on_next=note, on_complete=note, on_error=note)
    chain = shape(Source(9)).map(who(seen)).boundary(3).map_async(look_async).map(who(seen))

    def subscribe() -> None:
        WHO.set("the subscriber")
        chain.subscribe(subscriber)

    def ask(n: int) -> None:
        WHO.set("another caller")
        subscriber.request(n)

    contextvars.copy_context().run(subscribe)
    await turns()
    contextvars.copy_context().run(ask, 2)
    await turns(20)
    await asyncio.to_thread(ask, 3)
    await turns(20)
    WHO.set("a third")
    subscriber.request(20)
    await subscriber.end()
    await turns()
    assert set(seen) == {"the subscriber"}
    assert WHO.get() == "a third"


@every_shape
async def test_an_async_for_runs_in_the_context_of_its_consumer(shape: Shape) -> None:
    seen: list[str] = []
    chain = shape(Source(9)).map(who(seen))

    async def consume() -> None:
        WHO.set("the consumer")
        async for _ in chain:
            assert WHO.get() == "the consumer"

    await asyncio.create_task(consume())
    assert set(seen) == {"the consumer"}


async def test_two_subscribers_of_one_flow_keep_their_own_contexts() -> None:
    seen: dict[str, list[str]] = {"one": [], "two": []}
    chain = from_pull(lambda: iter(range(20)), name="numbers").boundary(2)
    subscribers: list[Acting] = []

    def subscribe(name: str) -> None:
        WHO.set(name)
        subscriber = Acting(1, 1, on_next=lambda self: seen[name].append(WHO.get()))
        subscribers.append(subscriber)
        chain.subscribe(subscriber)

    for name in seen:
        contextvars.copy_context().run(subscribe, name)
    for subscriber in subscribers:
        await subscriber.end()
    assert seen == {"one": ["one"] * 20, "two": ["two"] * 20}


async def test_a_callback_inside_another_subscription_is_in_its_own_context() -> None:
    """One subscriber's on_next drives another subscription."""
    seen: list[str] = []
    inner = Acting(on_next=lambda self: seen.append(f"inner: {WHO.get()}"))
    outer = Acting(3, on_next=lambda self: inner.request(1))

    def subscribe(name: str, subscriber: Acting) -> None:
        WHO.set(name)
        from_pull(lambda: iter(range(9)), name="numbers").subscribe(subscriber)

    contextvars.copy_context().run(subscribe, "in", inner)
    contextvars.copy_context().run(subscribe, "out", outer)
    assert seen == ["inner: in"] * 3


# -- what runs later, elsewhere, or beside ---------------------------------------------------------
SEEN: list[str] = []


def look(x: Any) -> Any:
    SEEN.append(WHO.get())
    return x


async def look_async(x: Any) -> Any:
    SEEN.append(WHO.get())
    await asyncio.sleep(0)
    SEEN.append(WHO.get())
    return x


async def numbers() -> AsyncIterator[int]:
    for number in range(5):
        look(number)
        await asyncio.sleep(0)
        yield number
    look(-1)


def on_a_thread() -> Iterator[int]:
    for number in range(5):
        yield look(number)


PLACES: dict[str, Callable[[], Flow[Any]]] = {
    "a thread": lambda: from_thread(on_a_thread).map(look),
    "timers": lambda: interval(0.001).map(look).take(4),
    "a timeout": lambda: from_async(numbers, name="numbers").timeout(5).map(look),
    "a timer's batch": lambda: from_iterable(range(9)).map(look).buffer_timeout(4, 0.01).map(look),
    "workers": lambda: from_iterable(range(9)).map_async(look_async, concurrency=3).map(look),
    "merged": lambda: merge(
        from_async(numbers, name="numbers"), from_iterable(range(3)).map(look)
    ).map(look),
    "inner flows": lambda: from_iterable(range(3)).flat_map(
        lambda x: from_async(numbers, name="numbers").map(look), concurrency=2
    ),
}


@pytest.mark.parametrize("made", PLACES.values(), ids=PLACES.keys())
async def test_deferred_and_concurrent_callbacks_run_in_the_subscriber_s_context(
    made: Callable[[], Flow[Any]],
) -> None:
    SEEN.clear()
    subscriber = Acting(on_next=look, on_complete=look)

    def subscribe() -> None:
        WHO.set("the subscriber")
        made().subscribe(subscriber)

    contextvars.copy_context().run(subscribe)
    WHO.set("another caller")
    subscriber.request(100)
    await asyncio.wait_for(subscriber.end(), 10)
    await turns()
    assert subscriber.is_completed, subscriber.error
    assert set(SEEN) == {"the subscriber"}


@pytest.mark.parametrize("made", PLACES.values(), ids=PLACES.keys())
async def test_deferred_callbacks_under_async_for_run_in_the_consumer_s_context(
    made: Callable[[], Flow[Any]],
) -> None:
    SEEN.clear()

    async def consume() -> None:
        WHO.set("the consumer")
        async for _ in made():
            look(None)

    await asyncio.create_task(consume())
    assert set(SEEN) == {"the consumer"}
