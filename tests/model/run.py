"""The functions that the programs call, besides those that the kit has.

What makes another element of one enters it as replaced, so that the ledger balances.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio.tck.model.run import ChildError, CleanupError, PipelineError, Run, in_progress
from reactive_aio.testing import Token

__all__ = ("CHILD", "ModelRun", "PipelineError")

CHILD = 500
"""The value of a child in a tree, less that of its parent."""


@dataclass(frozen=True, eq=False)
class Part:
    """A member of a list that a function has made of *token*."""

    token: Token
    value: int


@dataclass(eq=False)
class ModelRun(Run):
    """One run of a program of the whole vocabulary."""

    three_lines: Path = Path(__file__).parents[1] / "sources" / "three_lines.txt"
    _streams: list[Any] = field(default_factory=list[Any])
    _timers: list[asyncio.TimerHandle] = field(default_factory=list[asyncio.TimerHandle])
    """They fill queues, whoever reads."""

    def discarded(self, element: object) -> None:
        """`do_on_discard` has been given *element*, a token or what contains some."""
        if isinstance(element, Part):
            self.use_up(element.token)
        self.discarded_count -= isinstance(element, Flow)  # but the elements of a window are
        super().discarded(element)

    @property
    def errors(self) -> Collection[str]:
        """A stream that is closed at the end fails what an operator still reads of it."""
        return ("ClosedResourceError",) if self.finished.is_set() else ()

    def finish(self) -> None:
        super().finish()
        for stream in self._streams:
            stream.close()
        for timer in self._timers:
            timer.cancel()

    # -- functions of operators -------------------------------------------------------------------
    def summed(self, total: Token, token: Token) -> Token:
        return self.changed(token, self.value(total) + self.value(token))

    def twice(self, token: Token) -> "list[Part]":
        value = self.value(token)
        return [Part(token, value), Part(token, value + 1)]

    def of_part(self, part: "Part") -> Token:
        """A token for *part*; the one that the part was made of is used up."""
        self.use_up(part.token)
        return self.token(part.value)

    def twice_async(self, token: Token, connection: int | None = None) -> Flow[Token]:
        return r.from_aiter(
            lambda: self.steps(2, start=self.value(token), replaces=token, connection=connection)
        )

    def children(self, token: Token) -> Iterator[Token]:
        value = self.value(token)
        if value < CHILD and value % 3 == 0:
            yield self.token(value + CHILD)

    def line(self, token: Token) -> bytes:
        self.ledger.drop(token, "replaced")
        return f"{self.value(token)}\n".encode()

    def failing_async(self, k: int) -> Callable[[Token], Coroutine[Any, Any, Token]]:
        fails = self.failing(k)

        async def mapper(token: Token) -> Token:
            await asyncio.sleep(0.001 * (token.number % 2))
            return fails(token)

        return mapper

    async def sometimes(self, token: Token) -> Token:
        await asyncio.sleep(0.001)
        if self.value(token) % 3 == 0:
            raise self.error()
        return token

    def keeps_async(self, n: int) -> Callable[[Token], Coroutine[Any, Any, bool]]:
        keeps = self.keeps(n)

        async def predicate(token: Token) -> bool:
            await asyncio.sleep(0.001 * (token.number % 2))
            return keeps(token)

        return predicate

    def kept(self, n: int) -> Callable[[Token], Token | None]:
        keeps = self.keeps(n)
        return lambda token: token if keeps(token) else None

    def skipped(self, token: Token, _: BaseException) -> None:
        self.ledger.drop(token, "skipped")

    def mapped(self, error: BaseException) -> BaseException:
        """Another error for *error*; that of a cleanup is counted, and stays."""
        return error if isinstance(error, CleanupError) else PipelineError()

    def check_request(self, n: int) -> None:
        if n < 1:
            self.offences.append(f"do_on_request: {n} (3.9)")

    @property
    def logger(self) -> logging.Logger:
        return logging.getLogger("tests.model")

    async def in_a_task_group(self, count: int, fails_at: int = -1) -> AsyncIterator[Token]:
        """Tokens beside the work of a child, which may fail before one of them."""
        async with asyncio.TaskGroup() as group:
            failing = asyncio.Event()
            child = group.create_task(self._child(failing))
            async with aclosing(self.steps(count, may_be_cut=True)) as tokens:
                async for token in tokens:
                    if self.value(token) == fails_at:
                        failing.set()
                    yield token
                    del token
            child.cancel()

    async def _child(self, failing: asyncio.Event) -> None:
        await failing.wait()
        raise ChildError

    async def in_an_anyio_task_group(self, count: int) -> AsyncIterator[Token]:
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep, 10**6)
            async with aclosing(self.steps(count)) as tokens:
                async for token in tokens:
                    yield token
                    del token
            group.cancel_scope.cancel()

    def queue(self, count: int) -> "asyncio.Queue[int]":
        """A queue that timers fill."""
        queue: asyncio.Queue[int] = asyncio.Queue()
        for index, value in enumerate([*range(count), -1]):
            put, loop = queue.put_nowait, asyncio.get_running_loop()
            self._timers.append(loop.call_later(0.01 * index, put, value))
        return queue

    def stream(self, count: int) -> Any:
        """A stream of anyio that holds its elements already."""
        send, receive = anyio.create_memory_object_stream[int](count)
        for value in range(count):
            send.send_nowait(value)
        send.close()
        # Cancelled before it is read, a flow leaves the stream to the caller.
        self._streams.append(receive)
        return receive

    def emit(self, count: int, every: float = 0.0) -> Callable[[Any], Coroutine[Any, Any, None]]:
        async def emitter(to: r.Emitter[Token]) -> None:
            for value in range(count):
                await asyncio.sleep(every)
                token, is_accepted = self.token(value), False
                try:
                    is_accepted = bool(await to.emit(token))
                finally:
                    if not is_accepted:
                        self.ledger.drop(token, "kept by its producer")
                    del token

        return emitter

    def flaky(self, count: int) -> Flow[Token]:
        """A source that fails on its first two subscriptions."""
        attempts = iter((True, True, False))
        return r.defer(lambda: self.numbers(count, fails=next(attempts)))

    def beside(self, flow: Flow[Any]) -> Flow[Any]:
        """*flow*, which another subscriber reads at the same time."""
        return r.merge(flow, flow.filter(lambda _: False))

    def read_ahead(self, flow: Flow[Any]) -> Flow[Any]:
        """A flow that is iterated, which `bound` does not see either."""
        self.add_bound(flow.stream().bound().total, in_progress(flow))
        return flow

    async def sent(self, flow: Flow[Any]) -> list[int]:
        send, receive = anyio.create_memory_object_stream[int](10_000)
        with receive:
            await flow.to_anyio(send)
            return [value async for value in receive]
