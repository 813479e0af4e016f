"""Lost connections: calls are repeated as the policy allows, and the log has two lines of it."""

import asyncio

import pytest

from reactive_aio import RetryPolicy
from reactive_aio.connectors.common import Outage, raise_failed
from reactive_aio.delivery import BatchFailed

pytestmark = pytest.mark.virtual_time

MINUTE = RetryPolicy(attempts=None, delay=1, factor=1, jitter=0, within=60)


def outage(policy: RetryPolicy | int = MINUTE) -> Outage:
    return Outage("the server", policy, (OSError,))


class Server:
    """Answers from a time on."""

    def __init__(self, until: float) -> None:
        self.calls = 0
        self._until = until

    async def ask(self) -> str:
        self.calls += 1
        if asyncio.get_running_loop().time() < self._until:
            raise ConnectionError("refused")
        return "an answer"


async def test_an_outage_is_two_lines_whoever_calls(caplog: pytest.LogCaptureFixture) -> None:
    server, calls = Server(until=30), outage()
    answers = await asyncio.gather(*(calls.call(server.ask) for _ in range(3)))
    assert answers == ["an answer"] * 3
    assert [record.message for record in caplog.records] == [
        "the server cannot be reached, and is tried again: ConnectionError('refused')",
        "the server is back after 30.0 s and 90 failed calls",
    ]


async def test_the_policy_ends_it() -> None:
    server = Server(until=3600)
    with pytest.raises(ConnectionError) as failed:
        await outage().call(server.ask)
    assert asyncio.get_running_loop().time() == 60
    assert "attempt 61 failed with this error" in failed.value.__notes__[0]
    with pytest.raises(ConnectionError):
        await outage(2).call(server.ask)
    assert server.calls == 61 + 2


async def test_another_error_is_none_of_it(caplog: pytest.LogCaptureFixture) -> None:
    async def refuse() -> None:
        raise ValueError("not allowed")

    with pytest.raises(ValueError, match="not allowed"):
        await outage().call(refuse)
    assert not caplog.records


async def test_a_loop_counts_anew_after_each_answer() -> None:
    calls = outage(2)
    for _ in range(5):
        await calls.wait(OSError("lost"))
        calls.over()
    await calls.wait(OSError("lost"))
    with pytest.raises(OSError, match="again"):
        await calls.wait(OSError("lost again"))


def test_what_a_batch_says_of_its_elements() -> None:
    raise_failed([None, "a result"])
    with pytest.raises(BatchFailed) as failed:
        raise_failed([None, ValueError("no")])
    assert [*failed.value.errors] == [1]
