"""Every test runs in virtual time: waits take no time, and results do not depend on the machine."""

from collections.abc import Callable

from reactive_aio.testing import VirtualTimeLoop


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], VirtualTimeLoop]]:
    """The loops that tests run on."""
    return {"virtual": VirtualTimeLoop}
