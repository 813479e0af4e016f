"""A test leaves nothing behind: no lost error, no task, no thread.

Lost errors are those that reach nobody: a call of the loop's exception handler, or a log record of
level ERROR. A test that provokes them on purpose asks for `expects_loop_errors` or
`expects_error_logs`, gets the list of what has come so far, and judges it itself. A coroutine that
was never awaited is found by pytest, as every warning is an error.
"""

import asyncio
import gc
import logging
import threading
import time
import traceback
from collections.abc import AsyncIterator, Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio

Context = dict[str, Any]

# A thread that was told to end may need a moment; a task that was cancelled, a few turns.
THREADS_END_WITHIN = 2.0
TURNS_TO_SETTLE = 5
# Threads of the Spark gateway belong to the session, whichever test happens to start them.
OTHERS_THREADS = ("py4j.", "pyspark.")

TEST_FAILED = pytest.StashKey[bool]()


@dataclass
class Watch:
    """What went wrong unseen during one test."""

    contexts: list[Context] = field(default_factory=list[Context])
    records: list[logging.LogRecord] = field(default_factory=list[logging.LogRecord])
    expects_contexts: bool = False
    expects_records: bool = False

    def complaints(self) -> Iterator[str]:
        if not self.expects_contexts:
            for context in self.contexts:
                yield f"the loop's exception handler was called: {describe(context)}"
        if not self.expects_records:
            for record in self.records:
                yield f"logged as {record.levelname} by {record.name}: {record.getMessage()}"


class Watches(logging.Handler):
    """The watches of the tests that run: the last one hears what happens."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.open: list[Watch] = []

    def emit(self, record: logging.LogRecord) -> None:
        if self.open:
            self.open[-1].records.append(record)

    def hear(self, _loop: asyncio.AbstractEventLoop, context: Context) -> None:
        if self.open:
            self.open[-1].contexts.append(context)


WATCHES = Watches()


def listen(loop: asyncio.AbstractEventLoop) -> asyncio.AbstractEventLoop:
    """Make *loop* report to the watch of the test that runs."""
    loop.set_exception_handler(WATCHES.hear)
    return loop


def describe(context: Context) -> str:
    exception = context.get("exception")
    details = {key: value for key, value in context.items() if key not in {"message", "exception"}}
    text = f"{context.get('message')} {details or ''}"
    if isinstance(exception, BaseException):
        text += "\n" + "".join(traceback.format_exception(exception))
    return text


@pytest.fixture(autouse=True)
def watch(request: pytest.FixtureRequest) -> Iterator[Watch]:
    """Set up before the loop and torn down after it, so that it sees the loop's end as well."""
    here = Watch()
    threads = set(threading.enumerate())
    WATCHES.open.append(here)
    logging.getLogger().addHandler(WATCHES)
    yield here
    # A task whose error nobody fetched tells when it is collected. What a test made is young.
    gc.collect(1)
    WATCHES.open.remove(here)
    if not WATCHES.open:
        logging.getLogger().removeHandler(WATCHES)
    complaints = [*here.complaints(), *left_threads(threads)]
    if complaints and not has_failed(request):
        pytest.fail("\n".join(complaints), pytrace=False)


@pytest.fixture
def expects_loop_errors(watch: Watch) -> list[Context]:
    """The contexts given to the loop's exception handler; this test judges them."""
    watch.expects_contexts = True
    return watch.contexts


@pytest.fixture
def expects_error_logs(watch: Watch) -> list[logging.LogRecord]:
    """The log records of level ERROR and above; this test judges them."""
    watch.expects_records = True
    return watch.records


@pytest.fixture(autouse=True)
def settled(request: pytest.FixtureRequest, watch: Watch) -> None:
    """Brings in `no_task_is_left` first of all fixtures of the loop: it is torn down last."""
    if pytest_asyncio.is_async_test(request.node):
        request.getfixturevalue(no_task_is_left.__name__)


@pytest_asyncio.fixture
async def no_task_is_left(request: pytest.FixtureRequest) -> AsyncIterator[None]:
    yield
    for _ in range(TURNS_TO_SETTLE):
        if not other_tasks():
            return
        await asyncio.sleep(0)
    if (left := other_tasks()) and not has_failed(request):
        pytest.fail(f"tasks are left: {left}", pytrace=False)


def other_tasks() -> list[asyncio.Task[Any]]:
    return [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]


def left_threads(before: set[threading.Thread]) -> Iterator[str]:
    deadline = time.monotonic() + THREADS_END_WITHIN
    for thread in threading.enumerate():
        if thread in before or belongs_to_others(thread):
            continue
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            yield f"a thread is left: {thread}"


def belongs_to_others(thread: threading.Thread) -> bool:
    target = getattr(thread, "_target", None)
    modules = (type(thread).__module__, getattr(target, "__module__", None) or "")
    return any(f"{module}.".startswith(OTHERS_THREADS) for module in modules)


def has_failed(request: pytest.FixtureRequest) -> bool:
    """What a failed test leaves behind follows from its failure."""
    item: pytest.Item = request.node
    return item.stash.get(TEST_FAILED, False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[TEST_FAILED] = True
    return report
