"""Fixtures of every exploration."""

from collections.abc import Iterator

import pytest

from reactive_aio._core.time_slice import set_clock


@pytest.fixture(autouse=True)
def no_slice_ends() -> Iterator[None]:
    """A pause caused by the clock would change the order of events that is replayed."""
    before = set_clock(lambda: 0.0)
    yield
    set_clock(before)
