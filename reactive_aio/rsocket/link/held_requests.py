"""Requests that cannot be sent yet: for lack of a lease, or since as many are open as may be."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeAlias

from ..protocol.errors import MustWait

Send: TypeAlias = Callable[[], object]
"""Sends a request; raises `MustWait` if it has to wait."""
Fail: TypeAlias = Callable[[BaseException], object]


class HeldRequests:
    """The requests of one connection that wait, in the order in which they were made."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: OrderedDict[Hashable, tuple[Send, Fail]] | None = None
        """None until a request has to wait: most connections never have one."""

    def __len__(self) -> int:
        return len(self.waiting or ())

    def send(self, key: Hashable, send: Send, fail: Fail) -> bool:
        """Call *send* now, or hold it as the request *key*; whether it was called.

        If the request can never be sent, *fail* is called; an error of the first attempt is raised.
        """
        if not self.waiting:
            try:
                send()
            except MustWait:
                pass
            else:
                return True
        if self.waiting is None:
            self.waiting = OrderedDict()
        self.waiting[key] = send, fail
        return False

    def discard(self, key: Hashable) -> None:
        """The application gave the request up."""
        if self.waiting:
            self.waiting.pop(key, None)

    def release(self) -> bool:
        """Send as many as may be sent, the first one first; whether any was sent."""
        waiting, has_sent = self.waiting, False
        while waiting:
            key, (send, fail) = next(iter(waiting.items()))
            try:
                send()
            except MustWait:
                break
            except Exception as error:
                if waiting.pop(key, None) is not None:
                    fail(error)
            else:
                waiting.pop(key, None)
                has_sent = True
        return has_sent

    def fail_all(self, error: BaseException) -> None:
        """The connection has ended."""
        waiting, self.waiting = self.waiting, None
        for _, fail in (waiting or {}).values():
            fail(error)
