"""Operators that split bytes into lines, JSON documents, or what a separator divides."""

from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from .._shared.framing import LIMIT, JsonLines, Lines, Splitter, require_encoding
from ..stage import InlineStage, require_int

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = ("delimited", "json_lines", "lines")

B = TypeVar("B", bytes, bytearray, memoryview)


_EACH: Final = "emit each chain.from_iterable($splitter.batches(x))"


def _stage(name: str, make: Callable[..., Any], *params: str, each: str = _EACH) -> InlineStage:
    arguments = ", ".join(f"${each}" for each in params)
    return InlineStage(
        name,
        params=params,
        uses=(chain, make),
        setup=f"$splitter = {make.__name__}({arguments})",
        each=each,
        after="emit each $splitter.end()",
        checked=True,
    )


def lines_of(limit: int, encoding: str, errors: str) -> Lines:
    return Lines("lines", limit, encoding, errors, only_newlines=True)


_LINES = _stage("lines", lines_of, "limit", "encoding", "errors")
# A document is parsed when it is delivered.
_JSON_LINES = _stage("json_lines", JsonLines, "limit", each="emit each $splitter.feed(x)")
_DELIMITED = _stage("delimited", Splitter, "operator", "separator", "limit")


def lines(
    source: "Flow[B]", *, encoding: str = "utf-8", errors: str = "strict", limit: int = LIMIT
) -> "Flow[str]":
    r"""Split bytes into lines of text, without their ends (``\n`` or ``\r\n``).

    The chunks of bytes may end anywhere. A last line without an end is a line as well, and a ``\r``
    that no ``\n`` follows is a part of its line. *errors* is that of ``bytes.decode``. With
    ``encoding="utf-8-sig"``, a byte order mark at the start is left out; with ``"utf-8"``, it is
    the first character, as it is in ``open``.

    ::

        (ab|)
        .map(lambda x: f"{x}\n1\n".encode()).lines()
        (a1b1|)

    Demand: passed through, one chunk after the other until the requested lines are complete.
    Completes: when the source completes, after the last line.
    Fails: when the source fails, with bytes that cannot be decoded, or with `FrameTooLong` when a
        line has more than *limit* bytes without its end; after the lines before it.
    Cancels: when the subscriber cancels.
    Holds: 1 element, which is being split, and up to *limit* bytes of a line that has begun.
    Rules: 1.1
    """
    require_encoding("lines", encoding, errors)
    limit = require_int("lines", "limit", limit, least=1)
    return source.via(_LINES, limit, encoding, errors, holds=1, contents=1)


def json_lines(source: "Flow[B]", *, limit: int = 1_048_576) -> "Flow[Any]":
    r"""Read one JSON document from each line of bytes; blank lines are left out.

    The chunks of bytes may end anywhere. A line ends with ``\n`` or ``\r\n``; a byte order mark at
    the start is left out. Lines that `from_lines` has divided already are read by
    ``map(json.loads)``.

    ::

        (ab|)
        .map(lambda x: f'["{x}"]'.encode()).map(lambda x: x + bytes([10])).json_lines()
        ([a][b]|)

    Demand: passed through, one chunk after the other until the requested documents are complete.
    Completes: when the source completes, after the last document.
    Fails: when the source fails; with ValueError, which gives the number of the line, when a line
        is not a JSON document; with NotAnElement when it is ``null``; with `FrameTooLong` when it
        has more than *limit* bytes without its end; after the documents before it.
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
