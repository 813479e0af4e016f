"""What holds for every exploration."""

import sys

import pytest


@pytest.fixture(autouse=True)
def no_slice_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause because of the clock would be another order than the one that is replayed."""
    for name, module in [*sys.modules.items()]:
        if name.startswith("reactive_aio.") and hasattr(module, "SLICE"):
            monkeypatch.setattr(module, "perf_counter", lambda: 0.0)
