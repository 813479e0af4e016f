"""Operators that split bytes into lines, JSON documents, or what a separator divides."""

import json
from codecs import lookup
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from ..errors import FrameTooLong, NotAnElement
from ..stage import InlineStage, describe, require_int, short_text

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = ("delimited", "json_lines", "lines")

B = TypeVar("B", bytes, bytearray, memoryview)

LIMIT: Final = 65_536
"""The most bytes of a line, unless another limit is given."""


class Splitter:
    """Splits bytes at a separator, wherever the chunks end. Pure."""

    __slots__ = ("_limit", "_operator", "_rest", "_searched", "_separator")

    def __init__(self, operator: str, separator: bytes, limit: int) -> None:
        self._operator = operator
        self._separator = separator
        self._limit = limit
        self._rest = bytearray()
        """The bytes after the last separator, and those of the current chunk."""
        self._searched = 0
        """How many of them hold no separator."""

    def feed(self, chunk: object) -> Iterator[bytes]:
        """The frames that end in *chunk*."""
        if not isinstance(chunk, (bytes, bytearray, memoryview)):
            kind = type(chunk).__name__
            raise TypeError(
                f"{self._operator}: its elements must be bytes, not {describe(chunk)} ({kind}); "
                "for text: map(str.encode)"
            )
        rest, separator = self._rest, self._separator
        rest += chunk
        begin = 0
        while (end := rest.find(separator, begin + self._searched)) >= 0:
            self._require(end - begin)
            yield bytes(rest[begin:end])
            begin, self._searched = end + len(separator), 0
        del rest[:begin]
        self._searched = max(0, len(rest) - len(separator) + 1)
        self._require(self._searched)

    def end(self) -> Iterator[bytes]:
        """The last frame, if it has no separator after it."""
        if self._rest:
            yield bytes(self._rest)

    def _require(self, length: int) -> None:
        if length > self._limit:
            raise FrameTooLong(self._operator, self._limit)


class Lines:
    """Decodes the lines of bytes."""

    __slots__ = ("_encoding", "_errors", "_splitter")

    def __init__(self, encoding: str, errors: str, limit: int) -> None:
        self._splitter = Splitter("lines", b"\n", limit)
        self._encoding = encoding
        self._errors = errors

    def feed(self, chunk: object) -> Iterator[str]:
        return map(self._decoded, self._splitter.feed(chunk))

    def end(self) -> Iterator[str]:
        return map(self._decoded, self._splitter.end())

    def _decoded(self, line: bytes) -> str:
        return line.removesuffix(b"\r").decode(self._encoding, self._errors)


class JsonLines:
    """Reads a JSON document from each line of bytes that is not blank."""

    __slots__ = ("_number", "_splitter")

    def __init__(self, limit: int) -> None:
        self._splitter = Splitter("json_lines", b"\n", limit)
        self._number = 0

    def feed(self, chunk: object) -> Iterator[Any]:
        return self._read(self._splitter.feed(chunk))

    def end(self) -> Iterator[Any]:
        return self._read(self._splitter.end())

    def _read(self, lines: Iterator[bytes]) -> Iterator[Any]:
        for line in lines:
            self._number += 1
            if not line.strip():
                continue
            try:
                document = json.loads(line)
            except ValueError as error:
                raise ValueError(
                    f"json_lines: line {self._number} is not a JSON document: {error}: "
                    f"{short_text(line)}"
                ) from error
            if document is None:
                raise NotAnElement(
                    f"json_lines: line {self._number} is null, and None is not an element"
                )
            yield document


def _stage(name: str, make: Callable[..., Any], *params: str) -> InlineStage:
    arguments = ", ".join(f"${each}" for each in params)
    return InlineStage(
        name,
        params=params,
        uses=(make,),
        setup=f"$splitter = {make.__name__}({arguments})",
        each="emit each $splitter.feed(x)\ndrop",
        after="emit each $splitter.end()",
    )


_LINES = _stage("lines", Lines, "encoding", "errors", "limit")
_JSON_LINES = _stage("json_lines", JsonLines, "limit")
_DELIMITED = _stage("delimited", Splitter, "operator", "separator", "limit")


def lines(
    source: "Flow[B]", *, encoding: str = "utf-8", errors: str = "strict", limit: int = LIMIT
) -> "Flow[str]":
    r"""Split bytes into lines of text, without their ends (``\n`` or ``\r\n``).

    The chunks of bytes may end anywhere. A last line without an end is a line as well. *errors* is
    that of ``bytes.decode``.

    ::

        (ab|)
        .map(lambda x: f"{x}\n1\n".encode()).lines()
        (a1b1|)

    Demand: passed through, one chunk after the other until the requested lines are complete.
    Completes: when the source completes, after the last line.
    Fails: when the source fails, with bytes that cannot be decoded, or with `FrameTooLong` when a
        line has more than *limit* bytes; after the lines before it.
    Cancels: when the subscriber cancels.
    Holds: 1 element, which is being split, and up to *limit* bytes of a line that has begun.
    Rules: 1.1
    """
    lookup(encoding)
    limit = require_int("lines", "limit", limit, least=1)
    return source.via(_LINES, encoding, errors, limit, holds=1, contents=1)


def json_lines(source: "Flow[B]", *, limit: int = 1_048_576) -> "Flow[Any]":
    """Read one JSON document from each line of bytes; blank lines are left out.

    The chunks of bytes may end anywhere.

    ::

        (ab|)
        .map(lambda x: f'["{x}"]'.encode()).map(lambda x: x + bytes([10])).json_lines()
        ([a][b]|)

    Demand: passed through, one chunk after the other until the requested documents are complete.
    Completes: when the source completes, after the last document.
    Fails: when the source fails; with ValueError, which gives the number of the line, when a line
        is not a JSON document; with NotAnElement when it is ``null``; with `FrameTooLong` when it
        has more than *limit* bytes; after the documents before it.
    Cancels: when the subscriber cancels.
    Holds: 1 element, which is being split, and up to *limit* bytes of a line that has begun.
    Rules: 1.1
    """
    limit = require_int("json_lines", "limit", limit, least=1)
    return source.via(_JSON_LINES, limit, holds=1, contents=1)


def delimited(source: "Flow[B]", separator: bytes, *, limit: int = LIMIT) -> "Flow[bytes]":
    r"""Split bytes at each *separator*, such as ``b"\0"``, and leave it out.

    The chunks of bytes may end anywhere, even inside a separator. What follows the last separator
    is an element as well, unless it is empty.

    ::

        (ab|)
        .map(lambda x: f"{x};1;".encode()).delimited(b";").map(bytes.decode)
        (a1b1|)

    Demand: passed through, one chunk after the other until the requested parts are complete.
    Completes: when the source completes, after the last part.
    Fails: when the source fails; with `FrameTooLong` when a part has more than *limit* bytes, after
        the parts before it.
    Cancels: when the subscriber cancels.
    Holds: 1 element, which is being split, and up to *limit* bytes of a part that has begun.
    Rules: 1.1
    """
    given = cast("object", separator)
    if not isinstance(given, bytes) or not given:
        raise ValueError(
            f"delimited: separator must be bytes, and at least one of them, not {given!r}"
        )
    limit = require_int("delimited", "limit", limit, least=1)
    return source.via(_DELIMITED, "delimited", separator, limit, holds=1, contents=1)
