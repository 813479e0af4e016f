"""A client of several servers: each request goes to one that is connected and healthy."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from inspect import isawaitable
from random import random
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, Final, TypeVar, Unpack, cast

from anyio import Event, fail_after, move_on_after, sleep
from anyio.abc import AsyncResource

from .._core.arguments import Duration, require_callable, to_seconds
from .._core.failures import as_failure, stop_program
from .._core.foreign_text import without_secrets
from .._core.loop import LoopHandle, Task, wait_settled
from .._sources.values import defer
from ..retry import RetryPolicy
from .balance import BalancedServer, Member, ServerState, choose
from .client import OF_CONNECT, Client, ClientOptions, checked_options, open_client
from .link.callbacks import ends_task
from .link.reconnection import is_permanent
from .opening import Opening
from .option_checks import require_uri
from .payloads import Codec, error_text
from .protocol.errors import ConnectionLost, RequestRejected
from .protocol.frames import ErrorCode
from .protocol.stream_states import InteractionModel
from .requesting.requests import FLOWS, FNF, Requests
from .uri import Address

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    from ..flow import Flow

    Element = TypeVarWithDefault("Element", default=bytes)

T = TypeVar("T")
Health = Callable[[Client[Any]], Any]
"""Called with the client of one server; returns whether that is healthy, or raises. May be a
coroutine function."""
_RETRY: Final = RetryPolicy(attempts=None, delay=0.2, maximum=10.0)
"""Servers that are down are tried again as long as the client is open."""


class BalancedClient(Requests[T], AsyncResource):
    """The requests of a client, to several servers. Close it with ``async with``.

    Each request goes to one server, a stream when it is subscribed to: of two servers that are
    ready, picked at random, the one where it is expected to take less time. A server that is
    closing, unhealthy or not connected gets none. If there is no other, requests fail with
    `ConnectionLost` at once. A request that a server may have begun to process is not repeated on
    another one, since only the caller knows whether that is safe: ``flow.retry(policy)`` does it.
    """

    def __init__(
        self,
        members: Sequence[Member[T]],
        connect_to: Callable[[str], Awaitable[Client[T]]],
        policy: RetryPolicy,
        check: "HealthCheck | None",
    ) -> None:
        self._loop_handle = LoopHandle("connect_balanced()")
        self._members = members
        self._connect_to = connect_to
        self._policy = policy
        self._check = check
        self._tasks: list[Task[Any]] = []
        self._changed = Event()
        self._is_closing = False

    def __repr__(self) -> str:
        ready = sum(each.state is ServerState.READY for each in self.servers())
        return f"<BalancedClient {ready} of {len(self._members)} servers ready>"

    def servers(self) -> list[BalancedServer]:
        """The state of each server at this moment."""
        now = self._loop_handle.time()
        return [each.snapshot(now) for each in self._members]

    # -- interaction models ------------------------------------------------------------------------
    def _ask(self, model: InteractionModel, payload: Any, options: dict[str, Any]) -> Any:
        if model in FLOWS:
            return self._flow(lambda client: client._ask(model, payload, options))
        ask = self._forget if model is FNF else self._response
        return ask(lambda client: client._ask(model, payload, options))

    async def _response(self, request: Callable[[Client[T]], Awaitable[Any]]) -> Any:
        """Request one element from one of the servers.

        A server that is closing rejects requests that were in transit: they go to another one.
        """
        while True:
            member, client = self._choose()
            try:
                return await self._measured(member, request(client))
            except RequestRejected:
                if client.may_request:  # another reason; otherwise this server is not chosen again
                    raise

    async def _forget(self, request: Callable[[Client[T]], Awaitable[Any]]) -> None:
        member, client = self._choose()
        member.begin()
        try:
            await request(client)
        finally:
            member.end()

    def _choose(self) -> tuple[Member[T], Client[T]]:
        member = choose(self._members, self._loop_handle.time(), random(), random())
        if member is None or member.client is None:
            raise self.unavailable()
        return member, member.client

    def unavailable(self) -> ConnectionLost:
        """The error of a request for which no server is ready, with the reason for each."""
        if self._is_closing:
            return ConnectionLost(ErrorCode.CONNECTION_CLOSE, b"the client is closed")
        reasons = "; ".join(
            f"{each.uri} is {each.state.value}"
            + (f" ({error_text(each.error)})" if each.error else "")
            for each in self.servers()
        )
        return ConnectionLost(ErrorCode.CONNECTION_ERROR, f"no server is ready: {reasons}".encode())

    async def _measured(self, member: Member[T], request: Awaitable[Any]) -> Any:
        time = self._loop_handle.time
        began = time()
        member.begin()
        try:
            response = await request
        except Exception as error:
            member.failed(error, time())
            raise
        finally:
            member.end()
        member.responded((now := time()) - began, now)
        return response

    def _flow(self, request: "Callable[[Client[T]], Flow[Any]]") -> "Flow[Any]":
        def begin() -> "Flow[Any]":
            member, client = self._choose()
            flow = request(client)
            member.begin()
            return flow.do_on_error(failed(member)).do_finally(lambda _: member.end())

        def failed(member: Member[T]) -> "Callable[[BaseException], None]":
            return lambda error: member.failed(error, self._loop_handle.time())

        return defer(begin)

    # -- the life of the client --------------------------------------------------------------------
    async def ready(self) -> None:
        """Wait until a server is ready; raise `ConnectionLost` if none ever will be."""
        while True:
            states = {each.state for each in self.servers()}
            if ServerState.READY in states:
                return
            if self._is_closing or states == {ServerState.REFUSED}:
                raise self.unavailable()
            await self._changed.wait()

    async def aclose(self) -> None:
        """Close all connections; open streams fail. If the call is cancelled, they close later."""
        self._is_closing = True
        for task in self._tasks:
            task.cancel()
        create_task = self._loop_handle.create_task
        try:
            await wait_settled(*self._tasks)
        finally:
            clients = [each.client for each in self._members if each.client is not None]
            closing = [create_task(each.aclose(), "rsocket: closes a client") for each in clients]
            self._notify()
            await wait_settled(*closing)

    def start(self) -> None:
        """Begin to connect to each server."""
        for each in self._members:
            work = self._keep_connected(each)
            self._tasks.append(self._loop_handle.create_task(work, f"rsocket: {each.uri}"))

    def _notify(self) -> None:
        self._changed.set()
        self._changed = Event()

    async def _keep_connected(self, member: Member[T]) -> None:
        """Connect to one server, and again whenever its connection is lost."""
        time = self._loop_handle.time
        began, attempt = time(), 1
        while True:
            try:
                client = await self._connect_to(member.uri)
            except BaseException as failure:
                if ends_task(self._loop_handle, failure):
                    raise
                stop_program(self._loop_handle, failure)
                error: BaseException = as_failure(failure)
            else:
                member.connected(client)
                self._notify()
                error = await self._watch(member, client)
                began, attempt = time(), 1
            member.disconnected(error)
            delay = None
            if not is_permanent(error):
                delay = self._policy.decide(attempt, error, time() - began, random())
            if delay is None:
                member.give_up()
                self._notify()
                return
            self._notify()
            attempt += 1
            await sleep(delay)

    async def _watch(self, member: Member[T], client: Client[T]) -> BaseException:
        """Check the health of a server until its connection has ended; return why it has."""
        checking: Task[Any] | None = None
        if self._check is not None:
            work = self._check.run(member, client, self._notify)
            checking = self._loop_handle.create_task(work, f"rsocket: health of {member.uri}")
        try:
            return await client.closed()
        finally:
            if checking is not None:
                checking.cancel()
                await wait_settled(checking)


class HealthCheck:
    """Calls a function of the application with the client of a server, again and again."""

    def __init__(self, health: Health, interval: float) -> None:
        self._health = health
        self._interval = interval
        self._loop_handle = LoopHandle("connect_balanced()")

    async def run(
        self, member: Member[Any], client: Client[Any], on_result: Callable[[], object]
    ) -> None:
        while True:
            member.checked(await self._check(client))
            on_result()
            await sleep(self._interval)

    async def _check(self, client: Client[Any]) -> BaseException | None:
        try:
            with fail_after(self._interval):
                result: Any = self._health(client)
                if isawaitable(result):
                    result = await result
        except TimeoutError:
            return TimeoutError(f"the health check took more than {self._interval:g} s")
        except BaseException as error:
            if ends_task(self._loop_handle, error):
                raise
            stop_program(self._loop_handle, error)
            return as_failure(error)
        return None if result else RuntimeError(f"the health check returned {result!r}")


def connect_balanced(
    where: Sequence[str],
    *,
    codec: "Codec[Element] | None" = None,
    ssl: SSLContext | None = None,
    timeout: Duration = 10.0,
    retry: RetryPolicy | int = _RETRY,
    health: Health | None = None,
    health_interval: Duration = 10.0,
    **options: Unpack[ClientOptions],
) -> "Opening[BalancedClient[Element]]":
    """Connect to several servers that serve the same routes, and balance requests over them.

    The result is awaited, or entered by ``async with``, which closes the client as well.
    *where* has their URIs; all other options are those of `connect`, for each of them. It returns
    when one server is ready, and raises `ConnectionLost` with the reason for each of them if there
    is none within *timeout* seconds. The others are connected in the background. *retry* is the
    policy for each server that is lost or down; by default, there is no last attempt.

    *health* is called with the client of each server, once it is connected and then every
    *health_interval* seconds; while it returns a false value, raises or takes longer, the server
    gets no requests. Without it, a server is avoided for a time after three requests in a row that
    failed by the connection or by a timeout.
    """
    own = (*OF_CONNECT, "health", "health_interval")
    options = checked_options("connect_balanced", options, *own)
    given: Any = where
    if isinstance(given, str):
        shown = without_secrets(given)
        raise TypeError(f"connect_balanced: where must be a list of URIs: write [{shown!r}]")
    if not isinstance(cast("object", given), Iterable):
        raise TypeError(f"connect_balanced: where must be a list of URIs, not {given!r}")
    uris: list[str] = list(given)
    if not uris:
        raise ValueError("connect_balanced: where must have at least one URI")
    if len(set(uris)) < len(uris):
        shown = without_secrets(", ".join(uris))
        raise ValueError(f"connect_balanced: an URI is given twice: {shown}")
    for each in uris:
        require_uri("connect_balanced: where[…]", each)
        Address.parse(each)
    check: HealthCheck | None = None
    if health is not None:
        require_callable("connect_balanced", "health", health, takes=1)
        check = HealthCheck(health, to_seconds(health_interval, "health_interval"))
    limit, policy = to_seconds(timeout, "timeout"), RetryPolicy.of(retry)

    async def connect_to(uri: str) -> Client[Any]:
        return await open_client(uri, codec, ssl, limit, None, options)

    async def opened() -> BalancedClient[Any]:
        members: list[Member[Any]] = [Member(each, is_checked=check is not None) for each in uris]
        client: BalancedClient[Any] = BalancedClient(members, connect_to, policy, check)
        client.start()
        try:
            with move_on_after(limit):
                await client.ready()
                return client
            raise client.unavailable()
        except BaseException:
            await client.aclose()
            raise

    return Opening("connect_balanced", opened())
