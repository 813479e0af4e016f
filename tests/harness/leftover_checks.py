"""Every test fails that leaves a lost error, a task or a thread.

Lost errors are those that no caller receives: a call of the loop's exception handler, or a log
record of level ERROR. A test that provokes them requests `expects_loop_errors` or
`expects_error_logs`, gets the list of those so far, and checks it itself. pytest finds coroutines
that were never awaited, as every warning is an error.
"""

import asyncio
import gc
import logging
import signal
import threading
import time
import traceback
from collections.abc import AsyncIterator, Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio

from reactive_aio._core.process_end import called_off

Context = dict[str, Any]

# A thread may need a moment to end; a cancelled task, a few turns.
THREADS_END_WITHIN = 2.0
TURNS_TO_END = 5
# Threads of the Spark gateway live as long as the session, whichever test starts them.
FOREIGN_THREADS = ("py4j.", "pyspark.")
# A thread of the pool for Spark's calls that makes none: it ends a second later. Those of the pool
# that flows share for `map_in_process` live as long as the program.
SHARED_NAMES = ("idle thread for calls of Spark", "reactive_aio-shared-processes")

TEST_FAILED = pytest.StashKey[bool]()


@dataclass
class LostErrors:
    """The lost errors of one test."""

    contexts: list[Context] = field(default_factory=list[Context])
    records: list[logging.LogRecord] = field(default_factory=list[logging.LogRecord])
    expects_contexts: bool = False
    expects_records: bool = False

    def unexpected(self) -> Iterator[str]:
        if not self.expects_contexts:
            for context in self.contexts:
                yield f"the loop's exception handler was called: {describe(context)}"
        if not self.expects_records:
            for record in self.records:
                yield f"logged as {record.levelname} by {record.name}: {record.getMessage()}"


class Recorder(logging.Handler):
    """Records lost errors for the test that runs; with tests inside of tests, for the innermost."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.tests: list[LostErrors] = []

    def emit(self, record: logging.LogRecord) -> None:
        if self.tests:
            self.tests[-1].records.append(record)

    def handle_loop_error(self, _loop: asyncio.AbstractEventLoop, context: Context) -> None:
        if self.tests:
            self.tests[-1].contexts.append(context)


RECORDER = Recorder()


def with_error_recording(loop: asyncio.AbstractEventLoop) -> asyncio.AbstractEventLoop:
    """Record the errors of *loop* as lost errors of the test that runs."""
    loop.set_exception_handler(RECORDER.handle_loop_error)
    return loop


def describe(context: Context) -> str:
    exception = context.get("exception")
    details = {key: value for key, value in context.items() if key not in {"message", "exception"}}
    text = f"{context.get('message')} {details or ''}"
    if isinstance(exception, BaseException):
        text += "\n" + "".join(traceback.format_exception(exception))
    return text


@pytest.fixture(autouse=True)
def lost_errors(request: pytest.FixtureRequest) -> Iterator[LostErrors]:
    """Set up before the loop and torn down after it, so that the loop's end is checked as well."""
    errors = LostErrors()
    threads = set(threading.enumerate())
    RECORDER.tests.append(errors)
    logging.getLogger().addHandler(RECORDER)
    yield errors
    # A task reports an exception that was never retrieved when it is freed. Objects of a test are
    # young.
    gc.collect(1)
    RECORDER.tests.remove(errors)
    if not RECORDER.tests:
        logging.getLogger().removeHandler(RECORDER)
    complaints = [*errors.unexpected(), *leftover_threads(threads)]
    if complaints and not has_failed(request):
        pytest.fail("\n".join(complaints), pytrace=False)


@pytest.fixture
def expects_loop_errors(lost_errors: LostErrors) -> list[Context]:
    """The contexts given to the loop's exception handler, which this test checks."""
    lost_errors.expects_contexts = True
    return lost_errors.contexts


@pytest.fixture
def expects_error_logs(lost_errors: LostErrors) -> list[logging.LogRecord]:
    """The log records of level ERROR and above, which this test checks."""
    lost_errors.expects_records = True
    return lost_errors.records


@pytest.fixture
def process_goes_on() -> Iterator[None]:
    """For tests that send signals to their own process, which is not to end."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    called_off.set()
    yield
    called_off.clear()
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def request_no_leftover_tasks(request: pytest.FixtureRequest, lost_errors: LostErrors) -> None:
    """Set up `no_leftover_tasks` before all other fixtures of the loop: it is torn down last."""
    if pytest_asyncio.is_async_test(request.node):
        request.getfixturevalue(no_leftover_tasks.__name__)


@pytest_asyncio.fixture
async def no_leftover_tasks(request: pytest.FixtureRequest) -> AsyncIterator[None]:
    yield
    for _ in range(TURNS_TO_END):
        if not other_tasks():
            return
        await asyncio.sleep(0)
    if (tasks := other_tasks()) and not has_failed(request):
        pytest.fail(f"tasks are left: {tasks}", pytrace=False)


def other_tasks() -> list[asyncio.Task[Any]]:
    return [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]


def leftover_threads(before: set[threading.Thread]) -> Iterator[str]:
    deadline = time.monotonic() + THREADS_END_WITHIN
    for thread in threading.enumerate():
        if thread in before or is_foreign(thread) or thread.name.startswith(SHARED_NAMES):
            continue
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            yield f"a thread is left: {thread}"


def is_foreign(thread: threading.Thread) -> bool:
    target = getattr(thread, "_target", None)
    modules = (type(thread).__module__, getattr(target, "__module__", None) or "")
    return any(f"{module}.".startswith(FOREIGN_THREADS) for module in modules)


def has_failed(request: pytest.FixtureRequest) -> bool:
    """The leftovers of a failed test follow from its failure."""
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
