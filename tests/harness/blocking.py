"""A blocking call on a loop's thread fails the test that makes it.

Such a call (a sleep, a file, a socket, a lock that is held) stops every stream of the program.
It is seen when package or test code is on the stack and the thread runs a loop; in threads of
their own, blocking calls are what threads are for.
"""

from collections.abc import Iterator

import pytest
from blockbuster import BlockBuster, blockbuster_ctx

# Each happens once per process or pool, or only to report something: no stream waits for it twice.
MAY_BLOCK = {
    "<frozen importlib._bootstrap>": {"_find_and_load"},
    "/linecache.py": {"updatecache", "checkcache"},
    "<frozen linecache>": {"updatecache", "checkcache"},
    "/_pytest/assertion/rewrite.py": {"exec_module"},
    "/concurrent/futures/process.py": {"submit"},
}


@pytest.fixture(scope="session", autouse=True)
def blocking_calls_fail() -> Iterator[BlockBuster]:
    with blockbuster_ctx(["reactive_aio", "tests"]) as blockbuster:
        for function in blockbuster.functions.values():
            for file, names in MAY_BLOCK.items():
                function.can_block_in(file, names)
        yield blockbuster
