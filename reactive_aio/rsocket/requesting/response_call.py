"""One request for one element, from its call until its response."""

from typing import TYPE_CHECKING, Any

from ..serving.fire_and_forget import IN_HANDLER

if TYPE_CHECKING:
    from ..._core.loop import Future
    from ..link.driver import Driver
    from ..protocol.frames import PayloadTuple


def give_up(driver: "Driver", stream_id: int, response: "Future[bytes]") -> None:
    """The caller awaits *response* no more: cancel its request, if it is still open."""
    if driver.streams.responses.get(stream_id) is response:
        del driver.streams.responses[stream_id]
        driver.connection.cancel(stream_id)
        driver.schedule_turn()


class ResponseCall:
    """A request that is sent now, or held until it can be sent.

    Most requests need no such object: see `Requester.request_response`.
    """

    __slots__ = ("_driver", "_is_nested", "_request", "_stream_id", "_with_metadata", "response")

    def __init__(self, driver: "Driver", request: "PayloadTuple", with_metadata: bool) -> None:
        self._driver = driver
        self._request = request
        self._with_metadata = with_metadata
        self._stream_id = 0
        self._is_nested = IN_HANDLER.get()
        self.response: Future[bytes] = driver.loop_handle.event_loop.create_future()

    def begin(self) -> None:
        if self._is_nested:
            self._driver.handler_waits(1)
        self._driver.held_requests.send(self._send, self._fail)

    def _send(self) -> None:
        driver = self._driver
        self._stream_id = stream_id = driver.connection.request_response(self._request)
        driver.streams.responses[stream_id] = self.response
        if self._with_metadata:
            driver.streams.response_metadata[stream_id] = None
        driver.send_request()

    def _fail(self, error: BaseException) -> None:
        if not self.response.done():
            self.response.set_exception(error)

    def give_up(self) -> None:
        """The caller awaits the response no more: cancel what is left of the request."""
        if self._stream_id:
            give_up(self._driver, self._stream_id, self.response)
        else:
            self._driver.held_requests.discard(self._send)

    def end(self) -> Any:
        """The metadata of the response, if it was requested and there is any."""
        if self._is_nested:
            self._driver.handler_waits(-1)
        if not self._with_metadata:
            return None
        return self._driver.streams.response_metadata.pop(self._stream_id, None)
