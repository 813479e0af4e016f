"""Outage: one line when a server fails, and one when it is back."""

import asyncio
import logging

import pytest

from reactive_aio import RetryPolicy
from reactive_aio.delivery import Outage

pytestmark = pytest.mark.virtual_time

FOREVER = RetryPolicy(attempts=None, delay=1, maximum=1, jitter=0, only=OSError)


class Server:
    """It cannot be reached for the first *seconds*."""

    def __init__(self, seconds: float) -> None:
        self._up_at = asyncio.get_running_loop().time() + seconds
        self.calls = 0

    async def answer(self, value: int) -> int:
        self.calls += 1
        if asyncio.get_running_loop().time() < self._up_at:
            raise ConnectionError(f"no answer {self.calls} of redis://me:secret@host\nsecond line")
        return value


async def test_an_outage_is_one_line_and_its_end_another(caplog: pytest.LogCaptureFixture) -> None:
    server, outage = Server(10), Outage("Redis (orders)", FOREVER)
    assert str(outage) == "Redis (orders) can be reached"
    assert outage.awaited == "an answer of Redis (orders)"
    asking = asyncio.gather(*(outage.call(server.answer, n) for n in range(3)))
    await asyncio.sleep(5.5)
    assert outage.is_out
    assert str(outage).startswith("Redis (orders) fails since ")
    assert outage.awaited.startswith("an answer of Redis (orders), which fails since ")
    assert await asking == [0, 1, 2]
    assert str(outage) == "Redis (orders) can be reached"
    began, over = (record.getMessage() for record in caplog.records)
    assert began.startswith("Redis (orders) fails since ")
    assert " UTC, and is tried again: ConnectionError: no answer 1 of redis://" in began
    assert "secret" not in began
    assert over == "Redis (orders) is back after 10.0 s and 30 failed attempts"
    assert all(record.levelno == logging.WARNING for record in caplog.records)


async def test_an_error_that_the_policy_does_not_cover_is_raised_at_once_and_is_no_outage(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def refuse() -> None:
        raise ValueError("no such table")

    outage = Outage("PostgreSQL", FOREVER)
    with pytest.raises(ValueError, match="no such table"):
        await outage.call(refuse)
    assert str(outage) == "PostgreSQL can be reached"
    assert not caplog.records


async def test_the_last_error_says_since_when_it_fails() -> None:
    server = Server(60)
    policy = RetryPolicy(attempts=3, delay=1, only=OSError)
    with pytest.raises(ConnectionError, match="no answer 3") as caught:
        await Outage("Redis", policy).call(server.answer, 1)
    assert any(note.startswith("outage: Redis fails since ") for note in caught.value.__notes__)


async def test_a_loop_that_opens_something_again_counts_anew_after_each_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    outage = Outage("NATS", RetryPolicy(attempts=2, delay=1, only=OSError))
    for _ in range(5):
        await outage.wait(OSError("lost"))
        outage.over()
    assert len(caplog.records) == 10
    with pytest.raises(ValueError, match="no such subject"):
        await outage.wait(ValueError("no such subject"))
    for _ in range(2):  # also where the same loop is begun again
        await outage.wait(OSError("lost"))
        with pytest.raises(OSError, match="lost again") as caught:
            await outage.wait(OSError("lost again"))
        assert any(note.startswith("outage: NATS fails since ") for note in caught.value.__notes__)


async def test_a_call_that_is_not_repeated_may_begin_an_outage(
    caplog: pytest.LogCaptureFixture,
) -> None:
    outage = Outage("Redis", FOREVER)
    outage.failed(OSError("no answer"))
    outage.failed(OSError("no answer"))
    assert str(outage).endswith("2 attempts")
    assert await outage.call(Server(0).answer, 1) == 1
    assert len(caplog.records) == 2
