"""using: the resource is released exactly once, and before the terminal signal."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import pytest

import reactive_aio as r
from reactive_aio.spec import Publisher
from reactive_aio.testing import SubscriberProbe
from tests.cases import Needs
from tests.harness.one_run import in_one_run


class Resource:
    """A context manager of either kind that logs its calls."""

    def __init__(self) -> None:
        self.log: list[str] = []

    @contextmanager
    def plain(self) -> Generator[int]:
        self.log.append("enter")
        try:
            yield 3
        except OSError:
            self.log.append("error")
            raise
        finally:
            self.log.append("exit")

    @asynccontextmanager
    async def awaited(self) -> AsyncGenerator[int]:
        await asyncio.sleep(0)
        self.log.append("enter")
        try:
            yield 3
        except OSError:
            self.log.append("error")
            raise
        finally:
            await asyncio.sleep(0)
            self.log.append("exit")

    def of(self, kind: str) -> Callable[[], Any]:
        return self.plain if kind == "sync" else self.awaited


def failing_after(*elements: int) -> Iterator[int]:
    yield from elements
    raise ValueError


KINDS = pytest.mark.parametrize("kind", ["sync", "async"])

OF_LENGTH: Mapping[str, Callable[[int], Publisher[Any]]] = {
    "using: sync": lambda n: r.using(Resource().plain, lambda _: r.range(n)),
    "using: async": lambda n: r.using(Resource().awaited, lambda _: r.range(n)),
    "using: over a boundary": lambda n: r.using(Resource().plain, lambda _: r.range(n).boundary(2)),
}
FAILING: Mapping[str, Callable[[], Publisher[Any]]] = {
    "using: sync": lambda: r.using(Resource().plain, lambda _: r.error(OSError("no"))),
    "using: async": lambda: r.using(Resource().awaited, lambda _: r.error(OSError("no"))),
}
INFINITE: Mapping[str, Callable[[], Publisher[Any]]] = {
    "using": lambda: r.using(Resource().awaited, lambda _: r.generate(lambda n: (n, n + 1), 0)),
}


@KINDS
class TestLife:
    async def test_nothing_is_entered_before_the_first_request(self, kind: str) -> None:
        resource = Resource()
        flow = r.using(resource.of(kind), lambda n: r.range(n))
        SubscriberProbe[int]().subscribed_to(flow).cancel()
        assert resource.log == []

    async def test_it_is_exited_before_the_completion(self, kind: str) -> None:
        resource = Resource()
        flow = r.using(resource.of(kind), lambda n: r.range(n))
        told = flow.do_on_complete(lambda: resource.log.append("told"))
        assert await told.to_list() == [0, 1, 2]
        assert resource.log == ["enter", "exit", "told"]

    async def test_it_receives_the_failure_and_is_exited_before_the_error_signal(
        self, kind: str
    ) -> None:
        resource = Resource()
        flow = r.using(resource.of(kind), lambda _: r.error(OSError("no")))
        with pytest.raises(OSError, match="no"):
            await flow.to_list()
        assert resource.log == ["enter", "error", "exit"]

    async def test_a_flow_function_that_raises_releases_it(self, kind: str) -> None:
        resource = Resource()
        with pytest.raises(ZeroDivisionError):
            await r.using(resource.of(kind), lambda n: r.range(n // 0)).run()
        assert resource.log == ["enter", "exit"]

    async def test_leaving_early_releases_it_once(self, kind: str) -> None:
        resource = Resource()
        assert await r.using(resource.of(kind), lambda n: r.range(n)).first() == 0
        assert resource.log == ["enter", "exit"]

    async def test_the_source_cleans_up_before_the_resource(self, kind: str) -> None:
        resource = Resource()

        async def elements() -> AsyncIterator[int]:
            try:
                yield 1
                yield 2
            finally:
                await asyncio.sleep(0)
                resource.log.append("inner")

        flow = r.using(resource.of(kind), lambda _: r.from_aiter(elements))
        assert await flow.first() == 1
        assert resource.log == ["enter", "inner", "exit"]

    async def test_cancelling_the_task_releases_it(self, kind: str) -> None:
        resource = Resource()
        task = asyncio.ensure_future(r.using(resource.of(kind), lambda _: r.never()).run())
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for _ in range(5):
            await asyncio.sleep(0)
        assert resource.log == ["enter", "exit"]

    async def test_each_subscription_has_its_own(self, kind: str) -> None:
        resource = Resource()
        flow = r.using(resource.of(kind), lambda n: [n])
        assert [await flow.to_list() for _ in range(2)] == [[3], [3]]
        assert resource.log == ["enter", "exit"] * 2


# -- errors of the source and of the exit ----------------------------------------------------------
def raises() -> None:
    raise OSError("exit")


def raises_from_none() -> None:
    raise OSError("exit") from None


def raises_a_cancellation() -> None:
    raise asyncio.CancelledError("exit")


def swallows() -> bool:
    return True


def passes_on() -> None:
    pass


EXITS = [raises, raises_from_none, raises_a_cancellation, swallows, passes_on]


@dataclass
class Sync:
    """A context manager whose exit does what *exit* does."""

    exit: Callable[[], bool | None]

    def __enter__(self) -> int:
        return 1

    def __exit__(self, *_: object) -> bool | None:
        return self.exit()


@dataclass
class Async:
    exit: Callable[[], bool | None]

    async def __aenter__(self) -> int:
        return 1

    async def __aexit__(self, *_: object) -> bool | None:
        await asyncio.sleep(0)
        return self.exit()


@contextmanager
def generated(exit: Callable[[], bool | None]) -> Generator[int]:
    with Sync(exit) as value:
        yield value


@asynccontextmanager
async def generated_async(exit: Callable[[], bool | None]) -> AsyncGenerator[int]:
    async with Async(exit) as value:
        yield value


MANAGERS: Mapping[str, Callable[..., Any]] = {
    "sync": Sync,
    "async": Async,
    "sync generator": generated,
    "async generator": generated_async,
}


def fails() -> Iterator[int]:
    yield 1
    raise ValueError("the source")


async def fails_async() -> AsyncIterator[int]:
    yield 1
    raise ValueError("the source")


def is_not_made() -> Any:
    raise ValueError("the source")


def raises_a_cancellation_itself() -> Iterator[int]:
    yield 1
    raise asyncio.CancelledError("the source")


SOURCES: Mapping[str, Callable[[], Any]] = {
    "pulled": fails,
    "awaited": fails_async,
    "pushed": lambda: r.from_iterable(fails()).boundary(1),
    "not made": is_not_made,
    "a cancellation": raises_a_cancellation_itself,
}
READERS: Mapping[str, Callable[[r.Flow[int]], Any]] = {
    "run": lambda flow: flow.run(),
    "to_list": lambda flow: flow.to_list(),
    "async for": lambda flow: all_of(flow),
    "boundary": lambda flow: flow.boundary(2).run(),
    "merge": lambda flow: flow.merge_with([]).run(),
}


async def all_of(flow: r.Flow[int]) -> None:
    async for _ in flow:
        pass


def errors_behind(error: BaseException | None) -> list[str]:
    found: list[str] = []
    while error is not None:
        found.append(repr(error))
        error = error.__cause__ or error.__context__
    return found


@in_one_run
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("exit", EXITS)
@pytest.mark.parametrize("manager", MANAGERS.values(), ids=MANAGERS)
@pytest.mark.virtual_time
async def test_the_errors_are_those_of_a_with_statement(
    manager: Callable[..., Any],
    exit: Callable[[], bool | None],
    source: Callable[[], Any],
    read: Callable[[r.Flow[int]], Any],
) -> None:
    expected: BaseException | None = None
    failure = await ended(lambda: read(r.defer(source)))
    try:
        async with AsyncExitStack() as stack:
            made = manager(exit)
            is_sync = hasattr(made, "__enter__")
            await (asyncio.sleep(0, stack.enter_context(made)) if is_sync else entered(stack, made))
            raise failure
    except BaseException as error:
        expected = error
    found = await ended(lambda: read(r.using(lambda: manager(exit), lambda _: source())))
    assert (found is None) is (expected is None)
    told = " ".join(errors_behind(found))
    for behind in errors_behind(expected):
        assert behind in told


async def entered(stack: AsyncExitStack, manager: Any) -> None:
    await stack.enter_async_context(manager)


async def ended(read: Callable[[], Any]) -> Any:
    """The error with which it ends."""
    try:
        await read()
    except BaseException as error:
        return error
    return None


@pytest.mark.virtual_time
async def test_an_error_that_comes_before_the_release_is_not_one_of_the_release() -> None:
    @asynccontextmanager
    async def connection(error: Exception | None) -> AsyncGenerator[int]:
        try:
            yield 1
        finally:
            await asyncio.sleep(1)
            if error is not None:
                raise error

    def fails(_: int) -> r.Flow[int]:
        raise ZeroDivisionError

    reported: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    for error in (None, OSError("the release")):
        reading = asyncio.ensure_future(r.using(partial(connection, error), fails).run())
        await asyncio.sleep(0.5)
        reading.cancel()
        await asyncio.wait([reading])
        assert [context["exception"] for context in reported] == [error] * (error is not None)


@pytest.mark.parametrize("source", ["pulled", "awaited", "pushed"])
@pytest.mark.parametrize("manager", MANAGERS.values(), ids=MANAGERS)
@pytest.mark.virtual_time
async def test_a_reader_that_leaves_is_told_the_errors_of_both_cleanups(
    manager: Callable[..., Any], source: str
) -> None:
    def cleans_up() -> Iterator[int]:
        try:
            yield from range(99)
        finally:
            raise ValueError("the source")

    async def cleans_up_async() -> AsyncIterator[int]:
        try:
            for number in range(99):
                yield number
        finally:
            await asyncio.sleep(1)
            raise ValueError("the source")

    made: Callable[[], Any] = {
        "pulled": cleans_up,
        "awaited": lambda: r.from_aiter(cleans_up_async),
        "pushed": lambda: r.from_aiter(cleans_up_async).boundary(1),
    }[source]
    flow: r.Flow[int] = r.using(lambda: manager(raises), lambda _: made())
    elements = flow.stream()
    assert await anext(elements) == 0
    with pytest.raises(ExceptionGroup) as caught:
        await elements.aclose()
    assert sorted(map(str, caught.value.exceptions)) == ["exit", "the source"]


class TestErrors:
    async def test_an_error_of_the_exit_fails_the_flow(self) -> None:
        @contextmanager
        def brittle() -> Generator[int]:
            yield 1
            raise OSError("release")

        probe = SubscriberProbe[int](5).subscribed_to(r.using(brittle, lambda n: [n]))
        assert probe.elements == [1]
        assert isinstance(probe.error, OSError)

    async def test_an_error_of_the_exit_after_a_cancellation_is_reported(
        self, expects_loop_errors: list[dict[str, Any]]
    ) -> None:
        @contextmanager
        def brittle() -> Generator[int]:
            yield 1
            raise OSError("release")

        flow = r.using(brittle, lambda _: r.range(5))
        SubscriberProbe[int](1).subscribed_to(flow).cancel()
        assert isinstance(expects_loop_errors[0]["exception"], OSError)

    async def test_a_failure_of_the_source_before_a_cancellation_is_not_one_of_the_exit(
        self,
    ) -> None:
        """The flow below has handled it, or would have."""
        flow = r.using(Resource().awaited, lambda _: failing_after(1, 2))
        async with flow.on_error_complete().stream(prefetch=3) as elements:
            async for element in elements:
                if element == 2:
                    break

    async def test_entering_may_fail(self) -> None:
        resource_is_closed = bool(1)

        @asynccontextmanager
        async def closed() -> AsyncGenerator[int]:
            if resource_is_closed:
                raise OSError("closed")
            yield 1

        with pytest.raises(OSError, match="closed"):
            await r.using(closed, lambda n: [n]).run()

    async def test_cancelling_while_it_enters_lets_it_clean_up(self) -> None:
        log: list[str] = []

        @asynccontextmanager
        async def slow() -> AsyncGenerator[int]:
            try:
                log.append("begin")
                await asyncio.Event().wait()
                yield 1
            finally:
                log.append("end")

        probe = SubscriberProbe[int](1).subscribed_to(r.using(slow, lambda n: [n]))
        await asyncio.sleep(0)
        await cast("Any", probe.subscription).aclose()
        assert log == ["begin", "end"]

    async def test_an_error_of_entering_is_told_to_a_reader_that_leaves_meanwhile(self) -> None:
        @asynccontextmanager
        async def slow() -> AsyncGenerator[int]:
            try:
                await asyncio.Event().wait()
                yield 1
            finally:
                raise OSError("closed")

        elements = r.using(slow, lambda n: [n]).stream()
        waiting = asyncio.ensure_future(anext(elements))
        for _ in range(3):
            await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        with pytest.raises(OSError, match="closed"):
            await elements.aclose()

    async def test_something_else_is_refused_as_a_resource(self) -> None:
        with pytest.raises(TypeError, match="not a context manager"):
            await r.using(cast("Any", lambda: 5), lambda _: [1]).run()

    def test_arguments_must_be_functions(self) -> None:
        with pytest.raises(TypeError, match="using: resource"):
            r.using(cast("Any", 5), lambda _: [1])


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Make a flow": {
        "over a connection, a file or another resource that must be released": "using",
    },
}


async def example_using() -> None:
    @contextmanager
    def connection() -> Generator[list[str], None, None]:
        print("opened")
        yield ["row 1", "row 2", "row 3"]
        print("closed")

    print(await r.using(connection, lambda rows: rows).take(2).to_list())
