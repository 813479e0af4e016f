"""A blocking call on a loop's thread fails the test that makes it.

Such a call (a sleep, a file, a socket, a lock that is held for long) stops every stream of the
program. It is detected when package or test code is on the stack and the thread runs a loop; other
threads may block.
"""

import time
from _thread import LockType
from collections.abc import Iterator

import pytest
from blockbuster import BlockBuster

# Each happens once per process or pool, or only for a report: no stream waits for it twice.
MAY_BLOCK = {
    "<frozen importlib._bootstrap>": {"_find_and_load"},
    "/linecache.py": {"updatecache", "checkcache"},
    "<frozen linecache>": {"updatecache", "checkcache"},
    "/_pytest/assertion/rewrite.py": {"exec_module"},
    "/concurrent/futures/process.py": {"submit"},
    # It checks whether the path of a Unix socket is free.
    "/reactive_aio/rsocket/link/transports/endpoints.py": {"listen"},
    "/reactive_aio/observe/server.py": {"serve"},
    # These look for a file of passwords, and for a version, once for each connection.
    "/redis/utils.py": {"get_lib_version"},
    "/asyncpg/connect_utils.py": {"_parse_connect_dsn_and_args"},
    # Laws give other threads a moment to break a rule.
    "/reactive_aio/tck/laws/signals.py": {"_request_slowly"},
    "/reactive_aio/tck/scenario/upstream.py": {"_checked_call"},
    # It reads what /proc says of a process.
    "/tests/harness/outages.py": {"frozen"},
    # These have waited until the terminal is ready; a file does not block for long.
    "/reactive_aio/rsocket/command.py": {"read_lines", "write"},
}
# A thread may hold a lock for a few instructions, and be suspended by the system just then. If it
# holds the lock longer, it waits for something.
HELD_BRIEFLY = 0.05


def is_free_soon(lock: LockType, blocking: bool = True, timeout: float = -1) -> bool:
    if not blocking or timeout == 0:
        return True
    deadline = time.monotonic() + HELD_BRIEFLY
    while lock.locked() and time.monotonic() < deadline:
        time.sleep(0.0005)
    return not lock.locked()


@pytest.fixture(scope="session", autouse=True)
def blocking_calls_fail() -> Iterator[BlockBuster]:
    blockbuster = BlockBuster(["reactive_aio", "tests"])
    for name, function in blockbuster.functions.items():
        for file, names in MAY_BLOCK.items():
            function.can_block_in(file, names)
        if name.startswith("threading.Lock."):
            function.can_block_predicate = is_free_soon
    blockbuster.activate()
    yield blockbuster
    blockbuster.deactivate()
