"""Coroutines of handlers share a task until they suspend; each is as isolated as in its own."""

import asyncio
import gc
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager
from contextvars import ContextVar, copy_context
from time import thread_time
from types import coroutine
from typing import Any

import pytest

from reactive_aio.rsocket import (
    JSON,
    ApplicationError,
    Payload,
    Requester,
    Router,
    StreamFailed,
    connect,
    loopback,
    serve,
)
from reactive_aio.rsocket.protocol.frames import Cancel, Error, ErrorCode, RequestResponse
from reactive_aio.rsocket.serving.shared_tasks import _Steps

from .loop_turns import turns
from .wire import wire

HANDLER = Callable[[Any], Awaitable[Any]]
MANY = 20


@asynccontextmanager
async def served(handler: HANDLER, **options: Any) -> AsyncGenerator[Callable[[Any], Any]]:
    """Requests of the one handler, which is known to answer without suspending."""
    router = Router()

    async def route(payload: Any) -> Any:
        return await handler(payload)

    router.route("asked")(route)
    async with loopback(router, codec=JSON, **options) as requester:

        def ask(payload: Any) -> Any:
            return requester.request_response(payload, route="asked")

        yield ask


async def test_those_that_do_not_suspend_share_a_task() -> None:
    tasks: set[asyncio.Task[Any] | None] = set()

    async def answer(payload: int) -> int:
        tasks.add(asyncio.current_task())
        return payload

    async with served(answer) as ask:
        assert await asyncio.gather(*map(ask, range(MANY))) == list(range(MANY))
        assert len(tasks) < MANY / 2, "one task for each segment that was received"


async def test_those_that_suspend_run_concurrently_in_tasks_of_their_own() -> None:
    tasks: set[str] = set()

    async with asyncio.timeout(60):
        for _ in range(2):  # in the first round it is not known that they suspend
            barrier = asyncio.Barrier(MANY)

            async def meet(payload: int, barrier: asyncio.Barrier = barrier) -> int:
                if payload:
                    await barrier.wait()
                    task = asyncio.current_task()
                    assert task is not None
                    tasks.add(f"{task.get_name()} {id(task)}")
                return payload

            async with served(meet) as ask:
                for _ in range(2):
                    tasks.clear()
                    # The first is sent by itself, and the others together.
                    answers = await asyncio.gather(*map(ask, range(MANY + 1)))
                    assert answers == list(range(MANY + 1))
                    assert len(tasks) == MANY
                    assert {name.rpartition(" ")[0] for name in tasks} == {"rsocket: serves asked"}


async def test_a_handler_that_no_longer_suspends_shares_tasks_again() -> None:
    tasks: set[asyncio.Task[Any] | None] = set()

    async def answer(payload: bool) -> bool:
        tasks.add(asyncio.current_task())
        if payload:
            await asyncio.sleep(0)
        return payload

    async with served(answer) as ask:
        await ask(True)
        for _ in range(256):
            await ask(False)
        tasks.clear()
        await asyncio.gather(*[ask(False) for _ in range(MANY)])
        assert len(tasks) < MANY / 2


@pytest.mark.parametrize("suspends", [False, True])
async def test_each_has_a_context_of_its_own(suspends: bool) -> None:
    user: ContextVar[int] = ContextVar("user")

    async def answer(payload: int) -> int:
        assert user.get(-1) == -1
        token = user.set(payload)
        if suspends:
            await asyncio.sleep(0)
        found = user.get()
        user.reset(token)
        user.set(payload)  # and leaves it set
        return found

    async with served(answer) as ask:
        for _ in range(2):
            assert await asyncio.gather(*map(ask, range(MANY))) == list(range(MANY))
    assert user.get(-1) == -1


async def test_timeouts_and_task_groups_of_one_do_not_affect_the_others() -> None:
    async def answer(payload: int) -> str:
        if payload % 3 == 0:
            try:
                async with asyncio.timeout(0):
                    await asyncio.Event().wait()
            except TimeoutError:
                return "timed out"
        if payload % 3 == 1:
            async with asyncio.TaskGroup() as group:
                child = group.create_task(asyncio.sleep(0, "child"))
            return child.result()
        return "at once"

    async with served(answer) as ask:
        for _ in range(3):
            answers = await asyncio.gather(*map(ask, range(MANY)))
            assert answers == [["timed out", "child", "at once"][n % 3] for n in range(MANY)]


async def test_one_that_cancels_its_own_task_does_not_cancel_the_others() -> None:
    async def answer(payload: int) -> int:
        task = asyncio.current_task()
        assert task is not None
        if payload == 1:
            task.cancel()
        if payload == 2:
            await asyncio.sleep(0)
        if payload == 3:
            raise asyncio.CancelledError
        if payload == 4:
            task.cancel()
            await asyncio.sleep(0)
        return payload

    async with served(answer) as ask:
        answers = await asyncio.gather(*map(ask, range(6)), return_exceptions=True)
        assert [*answers[:3], answers[5]] == [0, 1, 2, 5]
        assert isinstance(answers[3], StreamFailed)
        assert isinstance(answers[4], StreamFailed)


def ignore(_: BaseException) -> None:
    """The report of an error that is expected."""


class Odd(BaseException):
    """Derived from neither Exception nor anything that stops the program."""


@pytest.mark.parametrize("suspends", [False, True])
@pytest.mark.parametrize("error", [ValueError("no"), ApplicationError(0x301, "no"), Odd()])
async def test_an_error_of_one_fails_its_request_alone(error: Any, suspends: bool) -> None:
    reported: list[BaseException] = []

    async def answer(payload: int) -> int:
        if suspends:
            await asyncio.sleep(0)
        if payload == 1:
            raise error
        return payload

    async with served(answer, on_error=reported.append) as ask:
        for _ in range(2):
            answers = await asyncio.gather(*map(ask, range(4)), return_exceptions=True)
            assert isinstance(answers.pop(1), StreamFailed)
            assert answers == [0, 2, 3]
    assert set(reported) == set() if isinstance(error, ApplicationError) else {error}


async def test_results_of_every_kind_are_sent() -> None:
    async def answer(payload: int) -> Any:
        if payload % 2:
            await asyncio.sleep(0)
        return [Payload(b"7", b"m"), Payload(b"8"), None, None, {1: object()}, {1: object()}][
            payload
        ]

    async with served(answer, on_error=ignore) as ask:
        for _ in range(2):
            answers = await asyncio.gather(*map(ask, range(6)), return_exceptions=True)
            assert answers[:2] == [7, 8]
            assert all(isinstance(each, Exception) for each in answers[2:])


async def test_a_cancelled_request_is_cancelled_where_it_is() -> None:
    begun: asyncio.Queue[int] = asyncio.Queue()
    cancelled: asyncio.Queue[int] = asyncio.Queue()

    async def answer(payload: int) -> int:
        begun.put_nowait(payload)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.put_nowait(payload)
            raise
        return payload

    async with served(answer) as ask:
        for _ in range(2):
            waiting = [asyncio.ensure_future(ask(n)) for n in range(3)]
            assert [await begun.get() for _ in range(3)] == [0, 1, 2]
            waiting[1].cancel()
            assert await cancelled.get() == 1
            waiting[0].cancel()
            waiting[2].cancel()
            assert {await cancelled.get(), await cancelled.get()} == {0, 2}


@pytest.mark.virtual_time
@pytest.mark.parametrize("is_cancelled", [True, False], ids=["cancelled", "ends by itself"])
async def test_the_end_of_the_connection_does_not_cut_a_cleanup(is_cancelled: bool) -> None:
    stages: list[str] = []

    async def work(payload: Any) -> None:
        try:
            if is_cancelled:
                await asyncio.Event().wait()
        finally:
            stages.append("begun")
            await asyncio.sleep(1)
            stages.append("ended")

    async with served(work) as ask:
        request = asyncio.ensure_future(ask(1))
        await turns(10)
        if is_cancelled:
            request.cancel()
            await turns(10)
        assert stages == ["begun"]
    await asyncio.gather(request, return_exceptions=True)
    await asyncio.sleep(2)
    assert stages == ["begun", "ended"]


async def test_a_long_batch_lets_others_run() -> None:
    turns = 0
    seen: list[tuple[asyncio.Task[Any] | None, int]] = []

    async def answer(payload: int) -> int:
        seen.append((asyncio.current_task(), turns))
        until = thread_time() + 0.003  # more than a slice
        while thread_time() < until:
            pass
        return payload

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with served(answer) as ask:
        counting = asyncio.create_task(count_turns())
        assert await asyncio.gather(*map(ask, range(10))) == list(range(10))
        counting.cancel()
        assert len({task for task, _ in seen}) < 10, "one task for each segment that was received"
        assert len({*seen}) == 10, "a turn after each; tasks of two segments alternate"


@pytest.mark.parametrize("last", [Cancel(5), Error(0, ErrorCode.CONNECTION_ERROR, b"")])
async def test_coroutines_that_have_not_begun_are_closed(last: Any) -> None:
    """Requests, and the end of one or of all of them, arrive together."""
    begun: list[int] = []
    router = Router()

    @router.route("wait")
    async def wait(payload: bytes) -> bytes:
        begun.append(int(payload))
        await asyncio.Event().wait()
        return payload

    async with loopback(router) as requester:
        transport: Any = requester._driver.line.transport
        driver = transport.other.driver
        await turns()
        metadata = b"\xfe\x00\x00\x05\x04wait"
        requests = [RequestResponse(n, Payload(b"%d" % n, metadata)) for n in range(1, 9, 2)]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            driver.data_received(wire(*requests, last))
            await turns()
            gc.collect()
        assert begun == ([1, 3, 7] if isinstance(last, Cancel) else [])


def test_one_that_waits_when_the_loop_is_closed_is_closed() -> None:
    released: list[int] = []

    @coroutine
    def suspend() -> Generator[None, None, None]:
        yield

    async def never() -> None:
        try:
            await suspend()
        finally:
            released.append(1)

    async def run(steps: _Steps) -> None:
        await steps

    held = never()
    running = run(_Steps(held, copy_context()))
    running.send(None)
    running.close()
    assert released == [1]


async def test_what_arrives_just_before_the_end_leaves_nothing_behind() -> None:
    """Neither a task nor a coroutine that was not awaited; warnings are errors here."""
    router = Router()

    async def never(payload: Any) -> Any:
        await asyncio.Event().wait()

    router.route("never")(never)

    async def one_round(wait: int) -> None:
        async with await serve("tcp://127.0.0.1:0", router) as server:
            requester: Requester[Any] = await connect(server.uri, codec=JSON)
            asked = [
                asyncio.ensure_future(requester.request_response(n, route="never"))
                for n in range(MANY)
            ]
            for _ in range(wait):
                await asyncio.sleep(0)
            requester._driver.ending.abort()
            failed = await asyncio.gather(*asked, return_exceptions=True)
            assert all(isinstance(each, StreamFailed) for each in failed)
            await requester.aclose()

    for wait in range(1, 10):
        await one_round(wait)
