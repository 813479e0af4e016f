"""One socket: what comes in is handed to its streams, and their messages take turns going out."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from ..._core.loop import Future, LoopHandle, Task, TimerHandle, wait_settled, yield_to_loop
from ...rsocket.routing import Router
from ..forms import Encode
from ..problem import ClientLeft, Problem, problem_of
from ..request import HttpRequest, Receive, Send
from ..tally import Tally
from .incoming import Incoming, Peer
from .messages import Closing, Id, Malformed, Message, demand, ending, read
from .outgoing import Outgoing
from .request import of_rsocket, start

__all__ = ("Manner", "Session")

_ANSWERS: Final = 64
_FLUSHED_WITHIN: Final = 5.0  # a client that is being sent away may still read why

Stream = Outgoing | Incoming


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How sockets are served, all alike."""

    router: Router
    encode: Encode[Any]
    max_message: int
    max_streams: int
    max_useless: int
    tell_errors: bool
    on_error: Callable[[BaseException], object] | None
    on_connect: Callable[[Peer], Any] | None
    tally: Tally


class Session:
    """The streams of one socket, and the two who move messages: a reader and a writer."""

    def __init__(
        self, loop_handle: LoopHandle, send: Send, manner: Manner, http: HttpRequest, user: Any
    ):
        self.loop_handle: LoopHandle = loop_handle
        self.tally: Tally = manner.tally
        self.encode: Encode[Any] = manner.encode
        self.peer: Peer = Peer(self, http, user)
        self._manner = manner
        self._send = send
        self._over = False
        self._outgoing: dict[Id, Outgoing] = {}
        self._incoming: dict[Id, Incoming] = {}
        self._numbered = 0
        self._useless = 0
        self._answers: deque[str] = deque()
        self._ready: deque[Stream] = deque()
        self._writer: Future[Any] | None = None  # what the writer waits for
        self._reader: Future[Any] | None = None
        self._leaving: list[Outgoing] = []
        self._doubt: TimerHandle | None = None  # whether the client left, when a send has failed

    # -- the life of the socket --------------------------------------------------------------------
    async def run(self, receive: Receive, first: Message | None) -> None:
        """Serve until the client leaves or is sent away."""
        tasks = [self.loop_handle.create_task(self._write(), "asgi: writes to a socket")]
        if self._manner.on_connect is not None:
            tasks.append(self.loop_handle.create_task(self._greet(), "asgi: on_connect"))
        try:
            if first is not None:
                self._take(first)
            await self._read(receive)
        except Closing as closing:
            self.say(ending(None, closing.problem))
            await self._flush(tasks[0])
            await self._close(closing.code)
        finally:
            await self._leave(tasks)

    async def _read(self, receive: Receive) -> None:
        while (event := await receive())["type"] != "websocket.disconnect":
            text = event.get("text")
            if text is None:
                raise Closing(415, "messages are text", 1003)
            if len(text) > self._manner.max_message:
                most = self._manner.max_message
                raise Closing(413, f"a message has {most} characters at most", 1009)
            try:
                self._take(read(text))
            except Closing:
                raise
            except Malformed as malformed:
                self._blame(malformed.problem)
            while len(self._answers) >= _ANSWERS and not self._over:
                self._reader = self.loop_handle.create_future()
                await self._reader
            await yield_to_loop()  # there may be thousands of messages to read already

    async def _greet(self) -> None:
        try:
            assert self._manner.on_connect is not None
            greeting = self._manner.on_connect(self.peer)
            if greeting is not None:
                await greeting
        except ClientLeft:
            pass
        except Exception as error:
            self.problem(error)

    async def _leave(self, tasks: list[Task[None]]) -> None:
        """Cancel what the client subscribed to, and fail what was subscribed to here."""
        self._over = True
        if self._doubt is not None:
            self._doubt.cancel()
        outgoing = [*self._outgoing.values(), *self._leaving]
        for stream in outgoing:
            stream.cancel()
            if stream.task is not None:
                tasks.append(stream.task)
        for taken in [*self._incoming.values()]:
            taken.fail(ClientLeft())
        for task in tasks:
            task.cancel()
        await wait_settled(*tasks)
        for stream in outgoing:
            await stream.aclose()

    # -- what comes in -----------------------------------------------------------------------------
    def _take(self, message: Message) -> None:
        kind = message.type
        if kind == "subscribe":
            self._subscribed(message)
        elif kind in ("request", "cancel"):
            stream = self._outgoing.get(message.id)
            if stream is None:
                self._idle()
            elif kind == "cancel":
                stream.cancel()
                if stream.fruitless:  # streams that are begun only to be cancelled cost most
                    self._idle()
            else:
                self._demanded(stream, message)
        elif (taken := self._incoming.get(message.id)) is None:
            self._idle()
        else:
            self.useful()
            taken.take(message)

    def _demanded(self, stream: Outgoing, message: Message) -> None:
        n = demand(message.n)
        if isinstance(n, Problem):
            self.say(stream.fail(n))
        else:
            stream.demand(n)

    def _subscribed(self, message: Message) -> None:
        id, manner = message.id, self._manner
        if id in self._outgoing:
            self._blame(Problem(409, f"the id {id!r} is in use"))
            return
        n, found = demand(message.n, least=0), manner.router.find(message.route)
        if isinstance(n, Problem):
            self._refused(id, n)
        elif len(self._outgoing) >= manner.max_streams:
            detail = f"there are {manner.max_streams} streams on this socket, its most"
            self._refused(id, Problem(429, detail))
        elif found is None:
            self._refused(id, Problem(404, "there is no such route"))
        else:
            handler, values = found
            stream = self._outgoing[id] = Outgoing(self, id)
            if n:
                stream.demand(n)
            stream.begin(partial(start, handler, values, message.route, message.params, self.peer))

    def _refused(self, id: Id, problem: Problem) -> None:
        self.tally.failed += 1
        self.say(ending(id, problem))
        self._idle()

    def _blame(self, problem: Problem) -> None:
        self.say(ending(None, problem))
        self._idle()

    def _idle(self) -> None:
        """A message was of no use; somebody who sends many of them is up to no good."""
        self._useless += 1
        if self._useless > self._manner.max_useless:
            raise Closing(429, "too many messages were of no use", 1008)

    def useful(self) -> None:
        """An element has gone out or come in, which makes up for one such message."""
        self._useless = max(0, self._useless - 1)

    # -- what its streams need ---------------------------------------------------------------------
    def ready(self, stream: Stream) -> None:
        if not stream.queued:
            stream.queued = True
            self._ready.append(stream)
            self._wake_writer()

    def say(self, text: str) -> None:
        self._answers.append(text)
        self._wake_writer()

    def ended(self, id: Id) -> None:
        stream = self._outgoing.pop(id, None)
        if stream is not None and stream.task is not None and not stream.task.done():
            self._leaving = [each for each in self._leaving if each.task and not each.task.done()]
            self._leaving.append(stream)

    def enlist(self, stream: Incoming) -> int:
        if self._over:
            return 0
        self._numbered += 1
        self._incoming[self._numbered] = stream
        return self._numbered

    def delist(self, stream: Incoming) -> None:
        self._incoming.pop(stream.id, None)

    def problem(self, error: BaseException) -> Problem:
        if theirs := of_rsocket(error):
            return theirs
        problem, meant = problem_of(error, self._manner.tell_errors)
        if not meant and not isinstance(error, ClientLeft):
            if self._manner.on_error is not None:
                self._manner.on_error(error)
            else:
                self.loop_handle.report("a stream on a WebSocket failed", error)
        return problem

    # -- what goes out -----------------------------------------------------------------------------
    async def _write(self) -> None:
        try:
            while True:
                for text in self._next():
                    await self._send({"type": "websocket.send", "text": text})
                    self.tally.bytes += len(text)
                if self._answers or self._ready:
                    await (
                        yield_to_loop()
                    )  # a server that never waits must not keep the others waiting
                    continue
                self._writer = self.loop_handle.create_future()
                await self._writer
        except OSError:  # so says a server that cannot send: the client has gone
            pass
        except Exception as error:
            # So do some that have seen the client leave, before they tell the reader.
            self._doubt = self.loop_handle.call_later(_FLUSHED_WITHIN, self.problem, error)
        finally:
            self._over = True
            _wake(self._reader)

    def _next(self) -> Iterator[str]:
        """Answers first; then the stream whose turn it is."""
        while self._answers:
            yield self._answers.popleft()
            if len(self._answers) < _ANSWERS:
                _wake(self._reader)
        if self._ready:
            stream = self._ready.popleft()
            stream.queued = False
            if not stream.over:
                yield from stream.write()

    def _wake_writer(self) -> None:
        _wake(self._writer)

    async def _flush(self, writer: Task[None]) -> None:
        """Let the writer say what is to be said, if the client reads it."""
        late = self.loop_handle.call_later(_FLUSHED_WITHIN, writer.cancel)
        try:
            while self._answers and not writer.done():
                self._reader = self.loop_handle.create_future()
                await self._reader
        finally:
            late.cancel()
            writer.cancel()
            await wait_settled(writer)

    async def _close(self, code: int) -> None:
        try:
            await self._send({"type": "websocket.close", "code": code})
        except (OSError, RuntimeError):  # the client has closed it at the same time
            pass


def _wake(waiter: Future[Any] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
