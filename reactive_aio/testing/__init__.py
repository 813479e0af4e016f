"""Tools for tests of asynchronous streams; none of them needs a test framework."""

from reactive_aio.testing.virtual_time import Deadlock, VirtualTimeLoop

__all__ = ["Deadlock", "VirtualTimeLoop"]
