"""Collection: snapshots for whatever collects metrics, on whichever thread it does."""

from concurrent.futures import Future
from functools import partial

from ..stage import Duration, LoopHandle, to_seconds
from .snapshots import Snapshot, take_snapshot

__all__ = ("Collection",)


class Collection:
    """Takes snapshots on the event loop on which it was created, called from any thread."""

    def __init__(self, name: str, timeout: Duration) -> None:
        self._name = name
        self._seconds = to_seconds(timeout, f"{name}: timeout")
        self._loop_handle = LoopHandle(name)

    def take(self) -> Snapshot | None:
        """A snapshot; None if the event loop is closed, so that nothing runs.

        Raises TimeoutError where the event loop does not answer, as something blocks it.
        """
        handle = self._loop_handle
        if handle.is_running_here:
            return take_snapshot(is_look=False)
        answer: Future[Snapshot] = Future()
        if handle.is_closed or not handle.call_soon_threadsafe(partial(_answer, answer)):
            return None
        try:
            return answer.result(self._seconds)
        except TimeoutError as error:
            answer.cancel()
            raise TimeoutError(
                f"{self._name}: the event loop has not answered within {self._seconds:g} s; "
                "something blocks it (observe.watch() reports what), or it is not running any more"
            ) from error


def _answer(answer: "Future[Snapshot]") -> None:
    if answer.set_running_or_notify_cancel():
        try:
            answer.set_result(take_snapshot(is_look=False))
        except BaseException as error:
            answer.set_exception(error)
