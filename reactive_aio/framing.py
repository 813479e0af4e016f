"""Bytes split into lines or other parts, wherever the chunks end. Pure."""

import codecs
import json
from collections.abc import Iterator
from typing import Any, Final

from ._core.compiler.error_notes import short_text
from ._core.compiler.inline import describe
from .errors import FrameTooLong, NotAnElement

__all__ = (
    "LIMIT",
    "JsonLines",
    "Lines",
    "Splitter",
    "UniversalSplitter",
    "require_encoding",
)

LIMIT: Final = 65_536
"""The most bytes of a line, unless another limit is given."""


class Splitter:
    """Splits bytes at a separator."""

    __slots__ = ("_limit", "_rest", "_searched", "_separator", "operator")

    def __init__(self, operator: str, separator: bytes, limit: int) -> None:
        self.operator: str = operator
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
                f"{self.operator}: its elements must be bytes, not {describe(chunk)} ({kind}); "
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
            raise FrameTooLong(self.operator, self._limit)


class UniversalSplitter:
    r"""Splits bytes into lines that end with ``\n``, ``\r\n`` or ``\r``."""

    __slots__ = ("_after_return", "_limit", "_rest", "operator")

    def __init__(self, operator: str, limit: int) -> None:
        self.operator: str = operator
        self._limit = limit
        self._rest = bytearray()
        """The bytes of the line that has begun."""
        self._after_return = False
        r"""Whether the last chunk ended with ``\r``: a ``\n`` belongs to the same end."""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that end in *chunk*."""
        if not chunk:
            return iter(())
        if self._after_return:
            chunk = chunk.removeprefix(b"\n")
        self._after_return = chunk.endswith(b"\r")
        lines = chunk.splitlines()
        begun = lines.pop() if lines and not chunk.endswith((b"\n", b"\r")) else b""
        if lines and self._rest:
            lines[0] = bytes(self._rest) + lines[0]
            self._rest.clear()
        self._rest += begun
        longest = max(map(len, lines), default=0)
        return iter(lines) if max(longest, len(self._rest)) <= self._limit else self._up_to(lines)

    def end(self) -> Iterator[bytes]:
        """The last line, if it has no end."""
        if self._rest:
            yield bytes(self._rest)

    def _up_to(self, lines: list[bytes]) -> Iterator[bytes]:
        """The lines before the first that is too long, and the error."""
        for line in lines:
            if len(line) > self._limit:
                break
            yield line
        raise FrameTooLong(self.operator, self._limit)


class Lines:
    """Decodes the lines that a splitter finds."""

    __slots__ = ("_encoding", "_errors", "_number", "_splitter")

    def __init__(self, splitter: Splitter | UniversalSplitter, encoding: str, errors: str) -> None:
        self._splitter = splitter
        self._encoding = encoding
        self._errors = errors
        self._number = 0

    def feed(self, chunk: Any) -> Iterator[str]:
        return self._decode(self._splitter.feed(chunk))

    def end(self) -> Iterator[str]:
        return self._decode(self._splitter.end())

    def _decode(self, lines: Iterator[bytes]) -> Iterator[str]:
        encoding, errors = self._encoding, self._errors
        for line in lines:
            self._number += 1
            try:
                text = line.removesuffix(b"\r").decode(encoding, errors)
            except UnicodeDecodeError as error:
                # Its message gives the position of the byte in the line.
                error.reason += f" ({self._splitter.operator}: in line {self._number})"
                raise
            yield text


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


def require_encoding(operator: str, encoding: str, errors: str) -> None:
    r"""Refuse an encoding that is unknown, or in which the byte ``\n`` does not end a line."""
    codecs.lookup_error(errors)
    try:
        ends_lines = b"\n".decode(encoding) == "\n"
    except UnicodeError:
        ends_lines = False
    if not ends_lines:
        raise ValueError(
            f"{operator}: in the encoding {encoding!r} the byte 0x0a does not end a line; for "
            "a file: from_thread(lambda: open(path, encoding=...))"
        )
