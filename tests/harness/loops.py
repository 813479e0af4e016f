"""Every asynchronous test runs on each loop that we promise to work on.

Without a mark, that is asyncio's own loop in debug mode and, where it is installed, uvloop as users
run it. With ``@pytest.mark.virtual_time`` it is the loop whose clock jumps, once.
``@pytest.mark.asyncio(loop_factories=["asyncio"])`` asks for one of them by name.
"""

import asyncio
import asyncio.constants
from collections.abc import Callable, Mapping
from importlib.util import find_spec

import pytest

from reactive_aio.testing.virtual_time import VirtualTimeLoop
from tests.harness.quiet import listen

# In debug mode each handle, task and future has a traceback made of where it comes from. Its last
# line is what is read; ten of them took a third of all the time.
asyncio.constants.DEBUG_STACK_DEPTH = 2  # type: ignore[misc]  # typeshed has it final

LoopFactory = Callable[[], asyncio.AbstractEventLoop]

HAS_UVLOOP = find_spec("uvloop") is not None


class DebugLoop(asyncio.SelectorEventLoop):
    """asyncio's loop, in debug mode whatever the runner thinks."""

    def set_debug(self, enabled: bool) -> None:
        super().set_debug(True)


def asyncio_loop() -> asyncio.AbstractEventLoop:
    return listen(DebugLoop())


def uvloop_loop() -> asyncio.AbstractEventLoop:
    import uvloop

    return listen(uvloop.new_event_loop())


def virtual_loop() -> asyncio.AbstractEventLoop:
    return listen(VirtualTimeLoop())


REAL_LOOPS: Mapping[str, LoopFactory] = {
    "asyncio": asyncio_loop,
    **({"uvloop": uvloop_loop} if HAS_UVLOOP else {}),
}
VIRTUAL_LOOP: Mapping[str, LoopFactory] = {"virtual": virtual_loop}


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, LoopFactory]:
    return VIRTUAL_LOOP if item.get_closest_marker("virtual_time") else REAL_LOOPS


def pytest_report_header() -> str:
    missing = "" if HAS_UVLOOP else " (uvloop is not installed: its half is not run)"
    return f"loops: {', '.join(REAL_LOOPS)}{missing}"
