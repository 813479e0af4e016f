"""Tests that must fail, each for one fault, and some that must pass. `test_harness` runs them.

pytest does not collect this file by itself, because of its name.
"""

import asyncio
import logging
import threading
import time
from pathlib import Path

import pytest

KEPT: list[object] = []
"""Keeps objects alive."""

LOCK = threading.Lock()
BRIEF_LOCK = threading.Lock()


async def endless() -> None:
    await asyncio.Event().wait()


async def fail() -> None:
    raise ValueError("lost")


def boom() -> None:
    raise ValueError("lost")


class TestFaulty:
    async def test_lost_callback_error(self) -> None:
        asyncio.get_running_loop().call_soon(boom)
        await asyncio.sleep(0)

    async def test_lost_task_error(self) -> None:
        await asyncio.wait([asyncio.ensure_future(fail())])

    async def test_error_log(self) -> None:
        logging.getLogger("some.where").error("something broke")

    def test_error_log_without_a_loop(self) -> None:
        logging.getLogger("some.where").error("something broke")

    async def test_forgotten_coroutine(self) -> None:
        endless()  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]

    async def test_left_task(self) -> None:
        KEPT.append(asyncio.ensure_future(endless()))

    async def test_left_thread(self) -> None:
        threading.Thread(target=time.sleep, args=(4,), name="the left one", daemon=True).start()

    async def test_blocking_sleep(self) -> None:
        time.sleep(0.001)  # noqa: ASYNC251 - the fault

    async def test_blocking_lock(self) -> None:
        LOCK.acquire()
        LOCK.acquire(timeout=0.01)

    async def test_blocking_file(self) -> None:
        Path(__file__).read_bytes()  # noqa: ASYNC240 - the fault

    @pytest.mark.virtual_time
    async def test_deadlock(self) -> None:
        await endless()

    async def test_failing_and_leaving(self) -> None:
        KEPT.append(asyncio.ensure_future(endless()))
        pytest.fail("the only complaint")


class TestHarmless:
    async def test_nothing(self) -> None:
        await asyncio.sleep(0)

    async def test_sleep_in_a_thread(self) -> None:
        await asyncio.to_thread(time.sleep, 0.001)

    async def test_lock_held_briefly(self) -> None:
        def hold() -> None:
            with BRIEF_LOCK:
                time.sleep(0.01)

        threading.Thread(target=hold).start()
        with BRIEF_LOCK:
            pass

    async def test_late_import(self) -> None:
        import this

        KEPT.append(this)

    async def test_task_that_ends_soon(self) -> None:
        task = asyncio.ensure_future(asyncio.sleep(30))
        await asyncio.sleep(0)
        task.cancel()

    async def test_thread_that_ends_soon(self) -> None:
        threading.Thread(target=time.sleep, args=(0.05,)).start()

    async def test_warning_log(self) -> None:
        logging.getLogger("some.where").warning("something is odd")
