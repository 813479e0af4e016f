"""Requests without a response, and how their handlers are called."""

from collections.abc import Coroutine
from contextlib import suppress
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from anyio import move_on_after

from ..link.callbacks import ends_task
from ..protocol.errors import ProtocolError, RequestInvalid, is_refusal
from ..protocol.frames import Payload
from ..protocol.stream_states import InteractionModel
from ..requesting.requester import Requester
from .interceptors import run
from .request import Request, read_metadata
from .request_execution import RequestExecution, publisher_of

if TYPE_CHECKING:
    from ..link.driver import Driver
    from ..protocol.events import RequestReceived
    from ..protocol.frames import MetadataPush
    from .responder import RouterResponder


class _WithoutResponse:
    """What both kinds of requests share: the end of a handler, and how it fails."""

    model: InteractionModel
    payload: Payload

    def __init__(self, responder: "RouterResponder", driver: "Driver") -> None:
        self.result: Any = None
        self._responder = responder
        self._driver = driver

    def begin(self) -> Coroutine[Any, Any, object] | None:
        """Call the handler; the rest of its work, if it has not finished. Raises nothing."""
        try:
            self.result = self._call()
        except BaseException as error:
            self._failed(error)
            return None
        is_unfinished = isawaitable(self.result) or publisher_of(self.result) is not None
        return self._finish() if is_unfinished else None

    def _call(self) -> Any:
        raise NotImplementedError

    def lost(self) -> None:
        """Count the request, which no handler processes, for its route."""

    def _remaining(self) -> float | None:
        """The number of seconds until the peer's deadline."""
        return None

    async def _finish(self) -> None:
        try:
            with move_on_after(self._remaining()) as scope:
                result = self.result
                if isawaitable(result):
                    result = await result
                publisher = publisher_of(result)
                if publisher is not None:
                    await publisher.run()
            if scope.cancelled_caught:
                self._drop("its deadline has passed")
        except BaseException as error:
            if ends_task(self._driver.loop_handle, error):
                raise
            self._failed(error)

    def _failed(self, error: BaseException) -> None:
        # Any other exception is one of the handler.
        if is_refusal(error) or isinstance(error, ProtocolError):
            self._drop(str(error))
        else:
            self._responder.report(self._driver, error)

    def _drop(self, reason: str) -> None:
        self._responder.fire_and_forget.drop(self._driver, self, reason)


class FnfRequest(_WithoutResponse):
    """A fire-and-forget request."""

    model: InteractionModel = InteractionModel.FNF

    def __init__(
        self, responder: "RouterResponder", driver: "Driver", requested: "RequestReceived"
    ) -> None:
        super().__init__(responder, driver)
        self.payload: Payload = requested.payload
        self._requested = requested
        self._execution: RequestExecution | None = None

    def _call(self) -> Any:
        execution = RequestExecution(self._responder, self._driver, self._requested)
        self._execution = execution
        if self._responder.is_guarded:
            return execution.call_when_authorized()
        return execution.call()

    def _failed(self, error: BaseException) -> None:
        if self._execution is not None:
            self._execution.counters.count_error(error)
        super()._failed(error)

    def lost(self) -> None:
        if self._execution is None:
            with suppress(RequestInvalid):
                self._execution = RequestExecution(self._responder, self._driver, self._requested)
        if self._execution is not None:
            self._execution.counters.lost += 1

    def _remaining(self) -> float | None:
        return None if self._execution is None else self._execution.request.remaining


class ReceivedPush(_WithoutResponse):
    """A metadata push."""

    model: InteractionModel = InteractionModel.PUSH

    def __init__(
        self, responder: "RouterResponder", driver: "Driver", frame: "MetadataPush"
    ) -> None:
        super().__init__(responder, driver)
        self.payload: Payload = Payload(b"", frame.metadata)

    def _call(self) -> Any:
        responder, driver = self._responder, self._driver
        push: Any = responder.router.metadata_push
        if push is None:
            raise ProtocolError("no function is decorated with @router.on_metadata_push")
        setup, most = driver.connection.setup, driver.connection.limits.max_items
        envelope = read_metadata(setup, self.payload.metadata, most)

        def peer() -> Requester[Any]:
            return Requester(driver, responder.codec(setup))

        def call(request: Request) -> Any:
            return push(metadata=request.metadata, user=request.user, peer=request.peer)

        async def call_when_authorized(request: Request) -> Any:
            await responder.check(request)
            result = call(request)
            return await result if isawaitable(result) else result

        request = Request(self.model, b"", driver.user, None, envelope, driver, peer)
        if responder.is_guarded:
            return run(responder.interceptors, request, call_when_authorized)
        return call(request)
