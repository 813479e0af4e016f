"""map_in_thread and map_in_process: order, chunks, errors, cancellation, and what runs where."""

import asyncio
import math
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from contextvars import ContextVar
from types import ModuleType
from typing import Any, cast

import pytest

import reactive_aio as r
from reactive_aio import Flow, Publisher
from reactive_aio.errors import Interrupted, NotAnElement
from reactive_aio.testing import SubscriberProbe
from tests.cases import Identities, Needs
from tests.operators.streams import MANY, slow
from tests.operators.ways import Failed
from tests.recipes.waiting import until

NAME: ContextVar[str] = ContextVar("NAME", default="unset")


def same(x: Any) -> Any:
    return x


def double(x: int) -> int:
    return 2 * x


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
    @pytest.mark.parametrize("chunk", [1, 3, 100])
    @pytest.mark.parametrize("feed", ["pulled", "pushed"])
    async def test_results_keep_the_order(self, chunk: int, feed: str) -> None:
        source = r.range(50) if feed == "pulled" else slow(range(50))
        assert await source.map_in_thread(double, chunk=chunk).to_list() == [*range(0, 100, 2)]
        unordered = source.map_in_thread(double, chunk=chunk, ordered=False)
        assert sorted(await unordered.to_list()) == [*range(0, 100, 2)]

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
    async def test_an_error_follows_the_results_before_it(self, chunk: int) -> None:
        probe = SubscriberProbe[int](MANY)
        probe.subscribed_to(r.range(9).map_in_thread(fails_at_two, concurrency=1, chunk=chunk))
        await probe.end()
        assert probe.elements == [0, 1]
        assert isinstance(probe.error, Failed)
        assert "with the element 2" in probe.error.__notes__[-1]

    @pytest.mark.parametrize(
        ("error", "received"),
        [
            (OwnError, OwnError),
            (asyncio.CancelledError, Interrupted),
            (GeneratorExit, RuntimeError),
        ],
    )
    async def test_any_exception_follows_the_results_before_it(
        self, error: type[BaseException], received: type[BaseException]
    ) -> None:
        def fail(x: int) -> int:
            if x == 2:
                raise error
            return x

        flow = r.range(9).map_in_thread(fail, concurrency=1, chunk=4)
        probe = SubscriberProbe[int](9).subscribed_to(flow)
        *results, failure = await probe.end()
        assert results == [0, 1]
        assert isinstance(failure, received)

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

    async def test_its_threads_end_with_the_flow(self) -> None:
        assert await r.range(9).map_in_thread(same).take(2).to_list() == [0, 1]
        for thread in threading.enumerate():
            if thread.name.startswith("reactive_aio-map_in_thread"):
                await asyncio.to_thread(thread.join, 10)
                assert not thread.is_alive()

    def test_mistakes_are_refused(self) -> None:
        async def work(x: int) -> int:
            return x

        with pytest.raises(TypeError, match="map_in_thread: mapper must be a plain function"):
            r.just(1).map_in_thread(cast("Any", work))
        with pytest.raises(ValueError, match="map_in_thread: concurrency must be at least 1"):
            r.just(1).map_in_thread(same, concurrency=0)
        with pytest.raises(ValueError, match="map_in_thread: chunk must be at least 1"):
            r.just(1).map_in_thread(same, chunk=0)


@pytest.mark.slow
class TestProcesses:
    async def test_it_runs_in_processes_that_end(self) -> None:
        flow: Flow[int] = r.range(6).map_in_process(process_of, concurrency=2)
        found = {*await flow.to_list()}
        assert os.getpid() not in found
        assert 1 <= len(found) <= 2
        for process in found:
            with pytest.raises(ProcessLookupError):
                os.kill(process, 0)

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

    async def test_a_process_that_dies_fails_the_flow(self) -> None:
        with pytest.raises(BrokenProcessPool, match=r"before any call returned.*__main__"):
            await r.just(1).map_in_process(dies, concurrency=1).run()

    async def test_a_process_that_dies_later_is_not_said_to_need_an_importable_program(
        self,
    ) -> None:
        with pytest.raises(BrokenProcessPool, match="in the middle of a call"):
            await r.just(1, 0).map_in_process(dies_at_zero, concurrency=1).run()

    def test_a_function_of_a_notebook_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        prompt = ModuleType("__main__")
        monkeypatch.setitem(sys.modules, "__main__", prompt)
        exec("def f(x): return x", vars(prompt))  # as a cell does
        with pytest.raises(TypeError, match=r"defined in a notebook or at a prompt.*in a file"):
            r.just(1).map_in_process(vars(prompt)["f"])

    def test_a_function_that_cannot_be_pickled_is_refused(self) -> None:
        with pytest.raises(TypeError, match=r"map_in_process: .* cannot be pickled; define it"):
            r.just(1).map_in_process(lambda x: x)


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
