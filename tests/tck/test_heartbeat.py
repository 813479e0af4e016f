"""What takes long is told from a machine that stands still."""

import time

import pytest

from reactive_aio.tck.scenario import heartbeat
from reactive_aio.tck.scenario.heartbeat import Heartbeat


def busy(seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def test_work_is_measured() -> None:
    with Heartbeat() as heart:
        took = max(heart.during(lambda: busy(0.1)) for _ in range(5))
    assert took > 0.02


def test_it_is_never_more_than_by_the_clock() -> None:
    with Heartbeat() as heart:
        busy(0.05)
        assert heart.during(lambda: None) < 0.05


def test_a_standstill_counts_as_little(monkeypatch: pytest.MonkeyPatch) -> None:
    jumps = 0.0

    class Clock:
        @staticmethod
        def monotonic() -> float:
            return time.monotonic() + jumps

        sleep = staticmethod(time.sleep)

    monkeypatch.setattr(heartbeat, "time", Clock)
    with Heartbeat() as heart:
        time.sleep(0.02)
        moment = heart.now()
        jumps = 100.0
        time.sleep(0.02)
        assert heart.since(moment) < 1.0
