"""What is set once, before the first test: the same start on every machine."""

import gc
import os
import signal
from collections.abc import Iterator
from time import thread_time

import pytest

from reactive_aio._core.time_slice import set_clock

# Spark Connect's gRPC has handlers for a fork, which now and then end the child of a later test.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")


def pytest_configure() -> None:
    # A shell lets what it runs in the background ignore Ctrl-C, and so would all that tests start.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    count_only_our_own_time()


def count_only_our_own_time() -> None:
    """Let flows pause for the loop by the time they took, not by what a busy machine took.

    Otherwise a test of three elements would see one in a thousand flows pause after the second.
    """
    set_clock(thread_time)


@pytest.fixture(autouse=True, scope="module")
def what_is_there_to_stay() -> None:
    """Have collections pass over thousands of tests, their reports, and packages as large as Spark.

    A test that collects rubbish then takes as long among all the others as it takes alone.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def modules_are_seen() -> Iterator[None]:
    """For a test whose module keeps something, and which looks for what keeps it."""
    gc.unfreeze()
    yield
    gc.freeze()
