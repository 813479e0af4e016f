"""The heartbeat distinguishes slow code from a suspended machine."""

import time

import pytest

from reactive_aio.tck.scenario import heartbeat
from reactive_aio.tck.scenario.heartbeat import Heartbeat


def busy(seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def test_work_is_measured() -> None:
    with Heartbeat() as beat:
        took = max(beat.during(lambda: busy(0.1)) for _ in range(5))
    assert took > 0.02


def test_processor_time_is_measured_even_if_no_tick_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "TICK", 1000.0)
    with Heartbeat() as beat:
        until = time.thread_time() + 0.05
        moment = beat.now()
        while time.thread_time() < until:
            pass
        assert beat.since(moment) > 0.04


def test_the_measure_never_exceeds_the_clock() -> None:
    with Heartbeat() as beat:
        busy(0.05)
        assert beat.during(lambda: None) < 0.05


def test_a_suspension_counts_only_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    jumps = 0.0

    class Clock:
        @staticmethod
        def monotonic() -> float:
            return time.monotonic() + jumps

        sleep = staticmethod(time.sleep)
        thread_time = staticmethod(time.thread_time)

    monkeypatch.setattr(heartbeat, "time", Clock)
    with Heartbeat() as beat:
        time.sleep(0.02)
        moment = beat.now()
        jumps = 100.0
        time.sleep(0.02)
        assert beat.since(moment) < 1.0
