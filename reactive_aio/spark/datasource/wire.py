"""How a Spark task talks to the process that has the loop. Pure, but for the client's own socket.

Both sides send frames, ``[uint32 length][bytes]``. The client's first one is a question, a JSON
object with the token in it; what follows depends on the question. An answer is a JSON object as
well, and one with an ``error`` is the last. Rows travel as Arrow streams.

This module is imported in Spark's Python workers, wherever they are: the standard library will do.
"""

import json
import socket
from collections.abc import Mapping
from struct import Struct
from types import TracebackType
from typing import Any, Final, Self, cast

__all__ = ("HEAD", "LONGEST_QUESTION", "Answer", "Line", "Refused", "frame", "told", "words")

HEAD: Final = Struct("!I")
LONGEST_QUESTION: Final = 1 << 20
"""Bytes. A schema is part of some; but nobody unknown may fill the memory."""
_SECONDS: Final = 30.0  # to connect

Answer = dict[str, Any]


class Refused(RuntimeError):
    """What the other side said instead of an answer."""


def frame(content: bytes) -> bytes:
    return HEAD.pack(len(content)) + content


def words(message: Mapping[str, Any]) -> bytes:
    """A message as the content of a frame."""
    return json.dumps(message).encode()


def told(content: bytes) -> Answer:
    """The message in a frame. Raises `ValueError` for what is none."""
    message = json.loads(content)
    if not isinstance(message, dict):
        raise ValueError("a JSON object is needed")
    return cast("Answer", message)


class Line:
    """A connection from a task, or from the driver's Python, to the loop."""

    def __init__(self, options: Mapping[str, str], operation: str, **question: Any) -> None:
        try:
            address, token = options["address"], options["token"]
        except KeyError as error:
            raise Refused(
                f"format('reactive') needs the option {error}: give .options(**served.options), "
                "with what serve_flow() or serve_writes() has returned"
            ) from None
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS)
        self._socket.settimeout(None)  # from here on, demand decides how long a wait is
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb")
        self.tell(token=token, operation=operation, **question)

    def tell(self, **message: Any) -> None:
        self.send(words(message))

    def send(self, content: bytes) -> None:
        self._socket.sendall(frame(content))

    def receive(self) -> bytes:
        head = self._file.read(HEAD.size)
        content = self._file.read(HEAD.unpack(head)[0]) if len(head) == HEAD.size else b""
        if not content:
            raise Refused(
                "the process that serves the flow has closed the connection: it has left its "
                "'async with', it has ended, or it does not know this token"
            )
        return content

    def answer(self) -> Answer:
        answer = told(self.receive())
        if "error" in answer:
            raise Refused(answer["error"])
        return answer

    def ask(self, **message: Any) -> Answer:
        self.tell(**message)
        return self.answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()
        self._socket.close()
