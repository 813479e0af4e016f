"""Every asynchronous test runs on each loop that is supported.

Without a mark, that is asyncio's own loop in debug mode and, where it is installed, uvloop as users
run it. A test marked `slow` or `spark`, and those in `INDEPENDENT_OF_LOOPS`, run on uvloop only
with ``--thorough``. With
``@pytest.mark.virtual_time`` it is the loop whose clock jumps, once.
``@pytest.mark.asyncio(loop_factories=["asyncio"])`` selects one of them by name.
"""

import asyncio
import asyncio.constants
import os
from collections.abc import Callable, Mapping
from importlib.util import find_spec

import pytest

from reactive_aio.testing.virtual_time import VirtualTimeLoop
from tests.harness.effort import Effort, effort
from tests.harness.leftover_checks import with_error_recording

# In debug mode each coroutine records the stack that created it. Two lines are enough.
asyncio.constants.DEBUG_STACK_DEPTH = 2  # type: ignore[misc]  # typeshed has it final

# What these test is decided before a loop has a part in it. The contract, the sources and the laws
# would find a difference between the loops.
INDEPENDENT_OF_LOOPS = (
    "tests/operators/",
    "tests/testing/",
    "tests/delivery/",
    # Apps that are called in memory; those that are served run on each loop.
    "tests/asgi/test_bad_input.py",
    "tests/asgi/test_errors.py",
    "tests/asgi/test_http_endpoint.py",
    "tests/asgi/test_lone_surrogates.py",
    "tests/asgi/test_starlette_response.py",
    "tests/asgi/test_text_protocol.py",
    # Figures and reports, without those of a loop that is blocked, and without sockets.
    "tests/observe/test_causes.py",
    "tests/observe/test_figures.py",
    "tests/observe/test_otel.py",
    "tests/observe/test_prometheus.py",
    "tests/observe/test_totals.py",
    "tests/test_foreign_texts.py",
    "tests/core/test_loop_compiler.py",
    "tests/core/test_error_notes.py",
    "tests/contract/test_fairness.py",
    "tests/test_mistakes.py",
)

LoopFactory = Callable[[], asyncio.AbstractEventLoop]

HAS_UVLOOP = find_spec("uvloop") is not None


class DebugLoop(asyncio.SelectorEventLoop):
    """asyncio's loop, in debug mode even if the runner disables it.

    What is made on it does not record the stack, which took a third of the time of all tests. With
    ``PYTHONASYNCIODEBUG=1`` in the environment it does, and a report shows where a task was made.
    """

    def set_debug(self, enabled: bool) -> None:
        super().set_debug(True)

    def get_debug(self) -> bool:
        """Whether tasks, futures and handles record stacks: asyncio asks when it makes one."""
        return bool(os.environ.get("PYTHONASYNCIODEBUG"))

    def checks_calls(self) -> bool:
        """Whether calls from the wrong thread, and slow callbacks, are found."""
        return super().get_debug()


def asyncio_loop() -> asyncio.AbstractEventLoop:
    return with_error_recording(DebugLoop())


def uvloop_loop() -> asyncio.AbstractEventLoop:
    import uvloop

    return with_error_recording(uvloop.new_event_loop())


def virtual_loop() -> asyncio.AbstractEventLoop:
    return with_error_recording(VirtualTimeLoop())


REAL_LOOPS: Mapping[str, LoopFactory] = {
    "asyncio": asyncio_loop,
    **({"uvloop": uvloop_loop} if HAS_UVLOOP else {}),
}
ASYNCIO_LOOP: Mapping[str, LoopFactory] = {"asyncio": asyncio_loop}
VIRTUAL_LOOP: Mapping[str, LoopFactory] = {"virtual": virtual_loop}


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, LoopFactory]:
    if item.get_closest_marker("virtual_time"):
        return VIRTUAL_LOOP
    return REAL_LOOPS if runs_on_every_loop(item) else ASYNCIO_LOOP


def runs_on_every_loop(item: pytest.Item) -> bool:
    """Whether this run has the time for it: see `tests.harness.effort`."""
    if effort() is not Effort.NORMAL:
        return effort() is Effort.THOROUGH
    if item.nodeid.startswith(INDEPENDENT_OF_LOOPS):
        return False
    return not any(item.get_closest_marker(name) for name in ("slow", "spark"))


def pytest_report_header() -> str:
    missing = "" if HAS_UVLOOP else " (uvloop is not installed: its half does not run)"
    return f"loops: {', '.join(REAL_LOOPS)}{missing}"
