"""map_in_thread and map_in_process: order, chunks, errors, cancellation, and what runs where."""

import asyncio
import math
import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, suppress
from contextvars import ContextVar
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest

import reactive_aio as r
from reactive_aio import Publisher
from reactive_aio.errors import Interrupted, NotAnElement
from reactive_aio.testing import SubscriberProbe
from tests.cases import Identities, Needs
from tests.operators.streams import MANY, slow
from tests.operators.ways import Failed
from tests.recipes.waiting import until
from tests.test_pools import die_while_it_answers

NAME: ContextVar[str] = ContextVar("NAME", default="unset")


def same(x: Any) -> Any:
    return x


def double(x: int) -> int:
    return 2 * x


def dies_while_it_answers(x: int, log: str) -> int:
    with open(log, "a") as file:
        file.write(f"{x} ")
    return die_while_it_answers(x) if x == 2 else x


def process_of(_: int) -> int:
    return os.getpid()


def fails_at_two(x: int) -> int:
    if x == 2:
        raise Failed(x)
    return x


def gives_none(_: int) -> Any:
    return None


def dies(_: int) -> int:
    os._exit(3)


def dies_at_zero(x: int) -> int:
    return x or dies(x)


OF_LENGTH: Mapping[str, Callable[[int], Publisher[object]]] = {
    "map_in_thread": lambda n: r.range(n).map_in_thread(same),
    "map_in_thread: in chunks": lambda n: slow(range(n)).map_in_thread(same, chunk=3),
}
FAILING: Mapping[str, Callable[[], Publisher[object]]] = {
    "map_in_thread": lambda: r.range(9).map_in_thread(fails_at_two),
    "map_in_thread: in chunks": lambda: r.range(9).map_in_thread(fails_at_two, chunk=2),
}
BY_THREADS = {*OF_LENGTH, *FAILING}
IDENTITIES: Identities = {"map_in_thread": lambda up: up.map_in_thread(same)}
NO_IDENTITY: Mapping[str, str] = {"map_in_process": "each law would start processes"}


class OwnError(BaseException):
    """An exception that is not an Exception."""


class TestThreads:
    async def test_it_runs_on_threads_of_its_own_in_the_context(self) -> None:
        def where(_: int) -> tuple[str, str]:
            return threading.current_thread().name, NAME.get()

        NAME.set("mine")
        for thread, name in await r.range(3).map_in_thread(where).to_list():
            assert thread.startswith("reactive_aio-map_in_thread")
            assert name == "mine"

    async def test_no_more_calls_run_at_the_same_time_than_allowed(self) -> None:
        running: list[int] = []
        most: list[int] = []
        lock = threading.Lock()

        def work(x: int) -> int:
            with lock:
                running.append(x)
                most.append(len(running))
            time.sleep(0.001)
            with lock:
                running.remove(x)
            return x

        assert await r.range(40).map_in_thread(work, concurrency=3).count() == 40
        assert max(most) <= 3

    @pytest.mark.parametrize("chunk", [1, 4])
    @pytest.mark.parametrize(
        ("error", "received"),
        [
            (Failed, Failed),
            (OwnError, OwnError),
            (asyncio.CancelledError, Interrupted),
            (GeneratorExit, RuntimeError),
        ],
    )
    async def test_any_exception_follows_the_results_before_it(
        self, error: type[BaseException], received: type[BaseException], chunk: int
    ) -> None:
        def fail(x: int) -> int:
            if x == 2:
                raise error
            return x

        flow = r.range(9).map_in_thread(fail, concurrency=1, chunk=chunk)
        probe = SubscriberProbe[int](9).subscribed_to(flow)
        *results, failure = await probe.end()
        assert results == [0, 1]
        assert isinstance(failure, received)
        assert "with the element 2" in "".join(failure.__notes__)

    @pytest.mark.parametrize("chunk", [1, 2])
    @pytest.mark.parametrize("ordered", [True, False])
    async def test_calls_that_fail_when_the_flow_has_failed_are_reported(
        self, chunk: int, ordered: bool, expects_loop_errors: list[Any]
    ) -> None:
        all_run, go_on = threading.Barrier(3), threading.Event()

        def work(x: int) -> int:
            all_run.wait(10)
            if x:
                go_on.wait(10)
            raise Failed(x)

        before = r.losses()
        flow = r.range(3 * chunk).map_in_thread(work, concurrency=3, chunk=chunk, ordered=ordered)
        probe = SubscriberProbe[int](MANY).subscribed_to(flow)
        await probe.end()
        assert str(probe.error) == "0"
        go_on.set()
        await until(lambda: len(expects_loop_errors) == 2)
        assert {str(each["exception"]) for each in expects_loop_errors} == {
            str(chunk), str(2 * chunk)
        }  # fmt: skip
        assert "with the element" in expects_loop_errors[0]["exception"].__notes__[-1]
        assert expects_loop_errors[0]["message"] == "map_in_thread: another call failed as well"
        assert (r.losses() - before).errors == 2

    @pytest.mark.parametrize("chunk", [1, 4])
    @pytest.mark.parametrize("discards", [True, False])
    async def test_a_stop_iteration_fails_the_flow(self, chunk: int, discards: bool) -> None:
        """A future cannot be given one: the flow waited for ever."""
        flow = r.range(9).map_in_thread(lambda x: next(iter([1][x:])), concurrency=1, chunk=chunk)
        found = SubscriberProbe[int](MANY)
        found.subscribed_to(flow.do_on_discard(same) if discards else flow)
        await found.end()
        assert found.elements == [1]
        assert isinstance(found.error, RuntimeError)
        assert isinstance(found.error.__cause__, StopIteration)

    async def test_a_call_that_fails_when_the_consumer_has_left_is_dropped(self) -> None:
        released = threading.Event()

        def work(x: int) -> int:
            if x:
                released.wait(10)
                raise Failed(x)
            return x

        async with r.range(9).map_in_thread(work, concurrency=3).stream() as elements:
            assert await anext(elements) == 0
            asyncio.get_running_loop().call_later(0.01, released.set)

    async def test_no_call_begins_after_a_chunk_has_failed(self) -> None:
        called: list[int] = []

        def work(x: int) -> int:
            called.append(x)
            return fails_at_two(x)

        for feed in (r.range(99), slow(range(99))):
            called.clear()
            with pytest.raises(Failed):
                await feed.map_in_thread(work, concurrency=1, chunk=3).to_list()
            assert called == [0, 1, 2]

    @pytest.mark.parametrize("chunk", [1, 4])
    async def test_none_is_not_an_element(self, chunk: int) -> None:
        with pytest.raises(NotAnElement, match="map_in_thread: gives_none returned None"):
            await r.range(9).map_in_thread(gives_none, concurrency=1, chunk=chunk).run()

    async def test_leaving_waits_for_the_call_that_runs(self) -> None:
        released, ended = threading.Event(), threading.Event()

        def work(x: int) -> int:
            if x:
                released.wait(10)
                ended.set()
            return x

        async with r.range(9).map_in_thread(work, concurrency=2).stream() as elements:
            assert await anext(elements) == 0
            asyncio.get_running_loop().call_later(0.01, released.set)
        assert ended.is_set()

    @pytest.mark.parametrize("chunk", [1, 2])
    async def test_the_result_of_a_call_that_outlives_the_flow_is_discarded(
        self, chunk: int
    ) -> None:
        released, running = threading.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def work(x: int) -> str:
            if x == 2:
                loop.call_soon_threadsafe(running.set)
                released.wait(10)
            if x == 3:
                raise Failed
            return str(x)

        discarded: list[object] = []
        flow = r.range(4).map_in_thread(work, concurrency=2, chunk=chunk)
        flow = flow.do_on_discard(discarded.append)
        async with flow.stream(prefetch=1) as elements:
            assert await anext(elements) == "0"
            await running.wait()
            asyncio.get_running_loop().call_later(0.01, released.set)
        assert sorted(discarded, key=str) == (["1", "2"] if chunk == 1 else ["1", "2", 3])

    async def test_the_elements_after_the_failed_one_of_a_chunk_are_discarded(self) -> None:
        discarded: list[object] = []
        flow = r.range(4).map_in_thread(fails_at_two, concurrency=1, chunk=4)
        probe = SubscriberProbe[int](MANY).subscribed_to(flow.do_on_discard(discarded.append))
        await probe.end()
        assert (probe.elements, discarded) == ([0, 1], [2, 3])

    def test_mistakes_are_refused(self) -> None:
        async def work(x: int) -> int:
            return x

        with pytest.raises(TypeError, match="map_in_thread: mapper must be a plain function"):
            r.just(1).map_in_thread(cast("Any", work))
        with pytest.raises(ValueError, match="map_in_thread: concurrency must be at least 1"):
            r.just(1).map_in_thread(same, concurrency=0)
        with pytest.raises(ValueError, match="map_in_thread: chunk must be at least 1"):
            r.just(1).map_in_thread(same, chunk=0)

    async def test_threads_are_shared_while_there_are_flows(self) -> None:
        def thread(_: int) -> int:
            return threading.get_ident()

        async with r.never().map_in_thread(thread).stream() as waiting:
            first = asyncio.ensure_future(anext(waiting))
            threads = {*await r.range(3).map_in_thread(thread, concurrency=1).to_list()}
            async with slow(range(3)).map_in_thread(thread, concurrency=1).stream() as elements:
                threads |= {await anext(elements)}
                threads |= {*await r.range(3).map_in_thread(thread, concurrency=1).to_list()}
            first.cancel()
        assert len(threads) <= 3

    async def test_the_threads_of_a_pool_are_left_to_its_owner(self) -> None:
        with ThreadPoolExecutor(1, "mine") as pool:
            flow = r.range(3).map_in_thread(lambda _: threading.current_thread().name, pool=pool)
            assert {*await flow.to_list()} == {"mine_0"}
            assert pool.submit(str, 1).result() == "1"

    async def test_a_pool_that_is_shut_down_fails_the_flow(self) -> None:
        pool = ThreadPoolExecutor(1)
        pool.shutdown()
        with pytest.raises(RuntimeError, match="cannot schedule new futures after shutdown"):
            await r.range(3).map_in_thread(same, pool=pool, concurrency=1).run()

    async def test_a_pool_that_breaks_fails_the_flow(
        self, expects_error_logs: list[object]
    ) -> None:
        def fail() -> None:
            raise Failed

        with (
            ThreadPoolExecutor(1, initializer=fail) as pool,
            pytest.raises(BrokenExecutor, match="initializer failed"),
        ):
            await r.range(3).map_in_thread(same, pool=pool, concurrency=1).run()

    async def test_chunks_of_a_short_function_grow_to_the_bound(self) -> None:
        sizes: dict[int, int] = {}

        def thread(x: int) -> int:
            call = id(sys._getframe(1))
            sizes[call] = sizes.get(call, 0) + 1
            return x

        flow = r.range(20_000).map_in_thread(thread, concurrency=2)
        assert flow.bound().total == 2 * 2 * 2048
        assert await flow.to_list() == [*range(20_000)]
        assert len(sizes) < 2_000

    @pytest.mark.parametrize("ordered", [True, False])
    async def test_a_call_that_blocks_holds_up_no_other_element(self, ordered: bool) -> None:
        """The elements behind it in its chunk are given to other threads."""
        released = threading.Event()
        blocking: list[int] = []

        def work(x: int) -> int:
            if x == 1000:
                blocking.append(x)
                released.wait(10)
            return x

        flow = r.range(1010).map_in_thread(work, concurrency=2, ordered=ordered)
        found: list[int] = []
        async for x in flow:
            found.append(x)
            if len(found) == (1000 if ordered else 1009):
                released.set()
        assert blocking == [1000]
        assert sorted(found) == [*range(1010)]

    async def test_calls_may_wait_for_each_other(self) -> None:
        barrier = threading.Barrier(3, timeout=10)

        def work(x: int) -> int:
            barrier.wait()
            return x

        assert await r.range(30).map_in_thread(work, concurrency=3).to_list() == [*range(30)]

    async def test_the_rest_of_a_chunk_is_left_when_the_flow_ends(self) -> None:
        released, running = threading.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()
        called: list[int] = []

        def work(x: int) -> int:
            called.append(x)
            if x == 1:
                loop.call_soon_threadsafe(running.set)
                released.wait(10)
            return x

        discarded: list[object] = []
        flow = r.range(9).map_in_thread(work, concurrency=1, chunk=9)
        async with flow.do_on_discard(discarded.append).stream() as elements:
            first = asyncio.ensure_future(anext(elements))
            await running.wait()
            first.cancel()
            loop.call_later(0.01, released.set)
        assert called == [0, 1]
        assert sorted(cast("list[int]", discarded)) == [*range(9)]

    @pytest.mark.parametrize("takes", [0, 1, 5, 40])
    @pytest.mark.parametrize("chunk", [None, 1, 7])
    @pytest.mark.parametrize("ordered", [True, False])
    async def test_each_element_is_delivered_or_discarded(
        self, takes: int, chunk: int | None, ordered: bool
    ) -> None:
        emitted, discarded = list[int](), list[object]()
        flow = r.range(40).do_on_next(emitted.append)
        mapped = flow.map_in_thread(same, concurrency=3, chunk=chunk, ordered=ordered)
        async with mapped.do_on_discard(discarded.append).stream(prefetch=1) as elements:
            found = [await anext(elements) for _ in range(takes)]
        assert sorted([*found, *cast("list[int]", discarded)]) == emitted

    async def test_the_earliest_of_several_failures_is_delivered(
        self, expects_loop_errors: list[Any]
    ) -> None:
        second = threading.Event()

        def work(x: int) -> int:
            if x == 0:
                second.wait(10)
            elif x == 1:
                second.set()
            raise Failed(x)

        probe = SubscriberProbe[int](MANY).subscribed_to(
            r.range(2).map_in_thread(work, concurrency=2, chunk=1)
        )
        await probe.end()
        assert str(probe.error) == "0"
        await until(lambda: len(expects_loop_errors) == 1)
        assert str(expects_loop_errors[0]["exception"]) == "1"


def pid_after(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def killed_at_seven(x: int) -> int:
    if x == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def size_of(data: bytes, _: int) -> int:
    return len(data)


class Unpicklable:
    def __reduce__(self) -> Any:
        raise Failed("this cannot be pickled")


class FailsOnArrival:
    """It can be pickled, and not be unpickled."""

    def __reduce__(self) -> Any:
        return unpickled, ()


def unpickled() -> None:
    raise Failed("this cannot be unpickled")


class OfTwo(Exception):
    """An error that can be pickled, and not be unpickled, as many are."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")


def unpicklable_at_two(x: int) -> object:
    return Unpicklable() if x == 2 else x


def fails_on_arrival_at_two(x: int) -> object:
    return FailsOnArrival() if x == 2 else x


def raises_of_two(_: int) -> int:
    raise OfTwo(4, "a code and a text")


def raises_unpicklable(_: int) -> int:
    raise Failed(Unpicklable())


def ends_iteration(_: int) -> int:
    raise StopIteration


@pytest.mark.slow
class TestProcesses:
    async def test_flows_share_processes_one_for_each_core(self) -> None:
        first = {*await r.range(6).map_in_process(process_of).to_list()}
        second = {*await r.range(2000).map_in_process(process_of).to_list()}
        assert os.getpid() not in first | second
        assert len(first | second) <= len(os.sched_getaffinity(0))
        assert first & second

    async def test_a_pool_is_used_and_left_to_its_owner(self) -> None:
        pool = r.ProcessPool(1)
        flow = r.range(6).map_in_process(process_of, pool=pool)
        assert flow.bound().total == 2 * 2 * 2048
        [process] = {*await flow.to_list()}
        assert {*await flow.to_list()} == {process}
        await asyncio.to_thread(pool.shutdown)
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)

    @pytest.mark.parametrize("chunk", [None, 1, 2])
    async def test_an_executor_of_threads_is_a_pool(self, chunk: int | None) -> None:
        async def result_of(elements: list[Any], function: Callable[[Any], Any]) -> Any:
            flow = r.from_iterable(elements).map_in_process(function, pool=pool, chunk=chunk)
            probe = SubscriberProbe[object](MANY).subscribed_to(flow)
            await probe.end()
            return probe.error or probe.elements

        with ThreadPoolExecutor(2) as pool:
            assert await result_of([1, 2, 3], double) == [2, 4, 6]
            given = [[1], [2], [3]]
            copies = await result_of(given, same)
            assert copies == given
            assert not any(copy is element for copy, element in zip(copies, given, strict=True))
            for bad in (Unpicklable(), FailsOnArrival()):
                assert isinstance(await result_of([1, bad, 3], same), Failed)
            assert isinstance(await result_of([1], raises_of_two), OfTwo)
            assert "cannot be sent" in str(await result_of([1], raises_unpicklable))

    def test_any_executor_is_a_pool(self) -> None:
        async def main() -> None:
            found = await r.range(3).map_in_process(double, pool=pool).to_list()
            assert found == [0, 2, 4]
            with pytest.raises(BrokenProcessPool):
                await r.just(7).map_in_process(killed_at_seven, pool=pool).run()

        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            asyncio.run(main())

    @pytest.mark.parametrize("chunk", [None, 1, 7])
    @pytest.mark.parametrize("ordered", [True, False])
    async def test_results_keep_the_order(self, chunk: int | None, ordered: bool) -> None:
        flow = slow(range(50)).map_in_process(double, chunk=chunk, ordered=ordered)
        found = await flow.to_list()
        assert (found if ordered else sorted(found)) == [*range(0, 100, 2)]

    async def test_an_error_comes_with_its_traceback_and_element(self) -> None:
        probe = SubscriberProbe[int](MANY)
        flow = r.range(9).map_in_process(fails_at_two, concurrency=1, chunk=4)
        probe.subscribed_to(flow)
        await probe.end()
        assert probe.elements == [0, 1]
        assert isinstance(probe.error, Failed)
        notes = "\n".join(probe.error.__notes__)
        assert "in fails_at_two" in notes
        assert "with the element 2" in notes

    async def test_a_process_that_is_killed_fails_its_call_alone(self) -> None:
        [before] = await r.just(0).map_in_process(pid_after).to_list()
        with pytest.raises(BrokenProcessPool, match=r"process \d+ was killed by SIGKILL") as caught:
            await r.just(7).map_in_process(killed_at_seven).run()
        assert "with the element 7" in caught.value.__notes__[-1]
        with pytest.raises(BrokenProcessPool, match="exit code 3 in the middle") as caught:
            await r.range(5).map_in_process(dies_at_zero, chunk=5).run()
        assert "was to work on 5 elements" in "".join(caught.value.__notes__)
        assert await r.range(3).map_in_process(same).to_list() == [0, 1, 2]
        assert before

    async def test_no_element_is_worked_on_again_after_a_process_died_while_it_answered(
        self, tmp_path: Path
    ) -> None:
        log = tmp_path / "log"
        call = partial(dies_while_it_answers, log=str(log))
        with pytest.raises(BrokenProcessPool, match="exit code 5 in the middle"):
            await r.range(3).map_in_process(call, chunk=3).run()
        assert await asyncio.to_thread(log.read_text) == "0 1 2 "

    async def test_a_process_that_has_died_between_flows_is_replaced(self) -> None:
        pool = r.ProcessPool(1)
        [process] = await r.just(0).map_in_process(pid_after, pool=pool).to_list()
        os.kill(process, signal.SIGKILL)
        with suppress(BrokenProcessPool):  # it may receive the call while it dies
            await r.just(0).map_in_process(pid_after, pool=pool).run()
        [other] = await r.just(0).map_in_process(pid_after, pool=pool).to_list()
        assert other != process
        await asyncio.to_thread(pool.shutdown)

    @pytest.mark.parametrize("chunk", [None, 1, 5])
    async def test_what_cannot_be_sent_fails_the_flow_at_its_element(
        self, chunk: int | None
    ) -> None:
        for bad, text in ((Unpicklable(), "pickled"), (FailsOnArrival(), "unpickled")):
            elements: list[object] = [1, 2, bad, 4, 5]
            flow = r.from_iterable(elements).map_in_process(same, chunk=chunk, concurrency=1)
            probe = SubscriberProbe[object](MANY).subscribed_to(flow)
            await probe.end()
            assert probe.elements == [1, 2]
            assert isinstance(probe.error, Failed)
            assert f"this cannot be {text}" in str(probe.error)
            assert type(bad).__name__ in probe.error.__notes__[-1]

    async def test_a_result_that_cannot_be_pickled_fails_the_flow_at_its_element(self) -> None:
        flow = r.range(5).map_in_process(unpicklable_at_two, chunk=5)
        probe = SubscriberProbe[object](MANY).subscribed_to(flow)
        await probe.end()
        assert probe.elements == [0, 1]
        assert isinstance(probe.error, Failed)
        assert "the result cannot be pickled" in "".join(probe.error.__notes__)
        assert "with the element 2" in probe.error.__notes__[-1]

    async def test_a_result_that_cannot_be_unpickled_is_an_error(self) -> None:
        with pytest.raises(Failed, match="cannot be unpickled") as caught:
            await r.range(5).map_in_process(fails_on_arrival_at_two, chunk=1).run()
        assert "the results of a call cannot be unpickled" in "".join(caught.value.__notes__)

    async def test_an_error_arrives_although_its_init_takes_something_else(self) -> None:
        with pytest.raises(OfTwo, match="4: a code and a text") as caught:
            await r.just(1).map_in_process(raises_of_two).run()
        assert "in raises_of_two" in "".join(caught.value.__notes__)

    async def test_an_error_that_cannot_be_sent_is_told_as_text(self) -> None:
        with pytest.raises(RuntimeError, match=r"Failed: .*the error itself cannot") as caught:
            await r.just(1).map_in_process(raises_unpicklable).run()
        assert "in raises_unpicklable" in "".join(caught.value.__notes__)

    async def test_a_stop_iteration_fails_the_flow(self) -> None:
        with pytest.raises(RuntimeError, match="map_in_process raised StopIteration"):
            await r.just(1).map_in_process(ends_iteration).run()

    async def test_none_is_not_an_element(self) -> None:
        with pytest.raises(
            NotAnElement, match=r"^rule 2.13: map_in_process: gives_none returned None"
        ):
            await r.range(9).map_in_process(gives_none, concurrency=1).run()

    async def test_a_lambda_is_sent_by_cloudpickle(self) -> None:
        factor = 3
        assert await r.range(3).map_in_process(lambda x: factor * x).to_list() == [0, 3, 6]

    async def test_a_function_with_much_data_is_sent_once(self) -> None:
        """That of 100 calls of a function with 30 MB would take 3 GB through a pipe."""
        data = bytes(30_000_000)
        flow = r.range(100).map_in_process(partial(size_of, data), chunk=1)
        async with asyncio.timeout(30):
            assert {*await flow.to_list()} == {30_000_000}

    def test_a_function_of_a_notebook_needs_cloudpickle(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        prompt = ModuleType("__main__")
        monkeypatch.setitem(sys.modules, "__main__", prompt)
        exec("def f(x): return x", vars(prompt))  # as a cell does
        r.just(1).map_in_process(vars(prompt)["f"])
        monkeypatch.setitem(sys.modules, "cloudpickle", None)
        with pytest.raises(TypeError, match=r"notebook or at a prompt.*in a file.*cloudpickle"):
            r.just(1).map_in_process(vars(prompt)["f"])

    def test_a_function_that_cannot_be_pickled_needs_cloudpickle(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lock = threading.Lock()
        with pytest.raises(TypeError, match=r"cannot be pickled; define it.*cloudpickle cannot"):
            r.just(1).map_in_process(lambda x: (x, lock))
        monkeypatch.setitem(sys.modules, "cloudpickle", None)
        with pytest.raises(TypeError, match=r"cannot be pickled; define it.*install.*cloudpickle"):
            r.just(1).map_in_process(lambda x: x)

    def test_mistakes_are_refused(self) -> None:
        with pytest.raises(TypeError, match=r"pool must be a concurrent\.futures\.Executor"):
            r.just(1).map_in_process(same, pool=cast("Any", 4))
        for pool in (r.ProcessPool, ThreadPoolExecutor):
            with pytest.raises(TypeError, match=rf", not the class .*: {pool.__name__}\(\.\.\.\)$"):
                r.just(1).map_in_thread(same, pool=cast("Any", pool))
        with pytest.raises(TypeError, match=r"pool must be a .*ThreadPoolExecutor"):
            r.just(1).map_in_thread(same, pool=cast("Any", r.ProcessPool(1)))


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Change each element": {
        "into the result of a function that blocks": "map_in_thread",
        "into the result of a function that computes for long": "map_in_process",
    },
    "Wait, or work concurrently": {
        "on threads": "map_in_thread",
        "in processes": "map_in_process",
    },
}


async def example_map_in_thread() -> None:
    def query(sql: str) -> int:  # blocks its thread, and not the event loop
        with closing(sqlite3.connect(":memory:")) as database:
            return int(database.execute(sql).fetchone()[0])

    print(await r.just("select 1 + 1", "select 2 * 3").map_in_thread(query).to_list())


async def example_map_in_process() -> None:
    # in a program, under `if __name__ == "__main__":`
    factorials = r.just(3, 5).map_in_process(math.factorial, concurrency=1)
    print(await factorials.to_list())
