"""Settings made once, before the first test: the same on every machine."""

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
    # A shell makes its background processes ignore Ctrl-C, and the tests' own would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    collect_garbage_less_often()
    measure_slices_by_thread_time()


def collect_garbage_less_often() -> None:
    """Let cycles wait longer: the collector took a sixth of the time of all tests.

    Each test ends with a collection, so that the next one finds nothing of it.
    """
    gc.set_threshold(50_000, 20, 100)


def measure_slices_by_thread_time() -> None:
    """Measure the time slices of flows by the time of their thread, not of a busy machine.

    Otherwise one in a thousand flows of three elements would yield to the loop after the second.
    """
    set_clock(thread_time)


@pytest.fixture(autouse=True, scope="module")
def freeze_older_objects() -> None:
    """Let the garbage collector skip thousands of tests, their reports, and large packages.

    A test that collects garbage then takes as long among all the others as it takes alone.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def unfrozen_objects() -> Iterator[None]:
    """For a test that searches the referrers of an object in a module-level variable."""
    gc.unfreeze()
    yield
    gc.freeze()
