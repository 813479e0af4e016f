"""The frames of threads, taken without a garbage collection meanwhile."""

import gc
import sys
import threading
from types import FrameType
from typing import Any

import pytest

from reactive_aio.testing.thread_frames import current_frames, frame_of


def test_the_frame_of_a_thread_is_where_it_waits() -> None:
    waits = threading.Event()
    thread = threading.Thread(target=waits.wait)
    assert frame_of(thread) is None, "it has not started"
    thread.start()
    while not is_in(threading.Event.wait, frame_of(thread)):
        """It is on its way there."""
    waits.set()
    thread.join()
    assert frame_of(thread) is None, "it has ended"


def is_in(function: Any, frame: FrameType | None) -> bool:
    """Whether *frame* was called from *function*."""
    while frame is not None and frame.f_code is not function.__code__:
        frame = frame.f_back
    return frame is not None


@pytest.mark.parametrize("enabled", [True, False])
def test_no_garbage_is_collected_meanwhile(monkeypatch: pytest.MonkeyPatch, enabled: bool) -> None:
    """Or CPython 3.11.8 may stop for ever, when a finalizer runs inside."""
    original = sys._current_frames
    during: list[bool] = []

    def watched() -> dict[int, FrameType]:
        during.append(gc.isenabled())
        return original()

    monkeypatch.setattr(sys, "_current_frames", watched)
    was_enabled = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        assert threading.get_ident() not in current_frames(), "which would keep what it has found"
        assert gc.isenabled() is enabled, "as before"
    finally:
        (gc.enable if was_enabled else gc.disable)()
    assert during == [False]
