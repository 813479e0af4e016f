"""Bytes split into lines or other parts, wherever the chunks end. Pure."""

import codecs
import json
from collections.abc import Iterable, Iterator
from itertools import chain, takewhile
from typing import Any, Final

from .._core.compiler.error_notes import short_text
from .._core.compiler.inline import describe
from ..errors import FrameTooLong, NotAnElement

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


BATCH: Final = 1024
"""How many parts of a chunk are split at once: many short ones need far more memory than it."""
_STATELESS: Final = frozenset(("ascii", "cp1252", "iso8859-1", "iso8859-15", "utf-8"))
_COMMON_ERRORS: Final = frozenset(
    ("backslashreplace", "ignore", "replace", "strict", "surrogateescape")
)


class _Rest:
    """The bytes of a part that has begun, and a byte order mark before the first one."""

    __slots__ = ("_limit", "_mark", "_rest", "operator")

    def __init__(self, operator: str, limit: int, mark: bytes) -> None:
        self.operator: str = operator
        self._limit = limit
        self._mark = mark
        self._rest = bytearray()

    def _skip_mark(self) -> bool:
        """Remove the mark from the first bytes; return whether they are enough to know."""
        first, mark = bytes(self._rest), self._mark
        if len(first) < len(mark) and mark.startswith(first):
            return False
        self._mark = b""
        self._rest[:] = first.removeprefix(mark)
        return True


class Splitter(_Rest):
    r"""Splits bytes at a separator.

    *before* may stand before a separator, and belongs to it: the ``\r`` of ``\r\n``. *mark* is left
    out where it begins the first part. Neither counts for the limit.
    """

    __slots__ = ("_before", "_searched", "_separator")

    def __init__(
        self,
        operator: str,
        separator: bytes,
        limit: int,
        *,
        before: bytes = b"",
        mark: bytes = b"",
    ) -> None:
        super().__init__(operator, limit, mark)
        self._separator = separator
        self._before = before
        self._searched = 0
        """How many bytes of the part that has begun hold no separator."""

    def feed(self, chunk: object) -> Iterator[bytes]:
        """The frames that end in *chunk*."""
        return chain.from_iterable(self.batches(chunk))

    def batches(self, chunk: object) -> Iterable[list[bytes]]:
        """The frames that end in *chunk*, some at a time."""
        if not isinstance(chunk, (bytes, bytearray, memoryview)):
            kind = type(chunk).__name__
            raise TypeError(
                f"{self.operator}: its elements must be bytes, not {describe(chunk)} ({kind}); "
                "for text: map(str.encode); lines that from_lines has divided need no "
                f"{self.operator}, but map, as map(json.loads)"
            )
        self._rest += chunk
        if self._mark and not self._skip_mark():
            return ()
        if self._rest.find(self._separator, self._searched) < 0:
            self._measure_rest()
            return ()
        return self._split(bytes(self._rest))

    def end(self) -> Iterator[bytes]:
        """The last frame, if it has no separator after it."""
        return chain.from_iterable(self.last_batch())

    def last_batch(self) -> Iterable[list[bytes]]:
        if len(self._rest) > self._limit:  # no separator had begun
            raise FrameTooLong(self.operator, self._limit)
        return ([bytes(self._rest)],) if self._rest else ()

    def _split(self, rest: bytes) -> Iterator[list[bytes]]:
        more, may_exceed = True, len(rest) > self._limit
        before = self._before
        has_before = bool(before) and before + self._separator in rest
        while more:
            parts = rest.split(self._separator, BATCH)
            more, rest = len(parts) > BATCH, parts.pop()
            if has_before:
                parts = [part.removesuffix(before) for part in parts]
            if may_exceed:
                yield from up_to_limit(self.operator, parts, self._limit)
            else:
                yield parts
        self._rest = bytearray(rest)
        self._measure_rest()

    def _measure_rest(self) -> None:
        # A separator may have begun.
        rest, before = self._rest, self._before
        self._searched = max(0, len(rest) - len(self._separator) + 1)
        if self._searched - (len(before) if rest.endswith(before) else 0) > self._limit:
            raise FrameTooLong(self.operator, self._limit)


def up_to_limit(operator: str, parts: list[bytes], limit: int) -> Iterator[list[bytes]]:
    """*parts*; or those before the first that is too long, and the error."""
    if max(map(len, parts), default=0) <= limit:
        yield parts
    else:
        yield [*takewhile(lambda part: len(part) <= limit, parts)]
        raise FrameTooLong(operator, limit)


class UniversalSplitter(_Rest):
    r"""Splits bytes into lines that end with ``\n``, ``\r\n`` or ``\r``.

    *mark* is left out where it begins the first line, and does not count for the limit.
    """

    __slots__ = ("_after_return",)

    def __init__(self, operator: str, limit: int, *, mark: bytes = b"") -> None:
        super().__init__(operator, limit, mark)
        self._after_return = False
        r"""Whether the last chunk ended with ``\r``: a ``\n`` belongs to the same end."""

    def batches(self, chunk: bytes) -> Iterator[list[bytes]]:
        """The lines that end in *chunk*."""
        if self._mark:
            self._rest += chunk
            if not self._skip_mark():
                return
            chunk = bytes(self._rest)
            self._rest.clear()
        if not chunk:
            return
        if self._after_return:
            chunk = chunk.removeprefix(b"\n")
        self._after_return = chunk.endswith(b"\r")
        lines = chunk.splitlines()
        may_exceed = len(self._rest) + len(chunk) > self._limit
        begun = lines.pop() if lines and not chunk.endswith((b"\n", b"\r")) else b""
        if lines and self._rest:
            lines[0] = bytes(self._rest) + lines[0]
            self._rest.clear()
        self._rest += begun
        if may_exceed:
            yield from up_to_limit(self.operator, lines, self._limit)
        else:
            yield lines
        if len(self._rest) > self._limit:
            raise FrameTooLong(self.operator, self._limit)

    def last_batch(self) -> Iterable[list[bytes]]:
        """The last line, if it has no end."""
        return ([bytes(self._rest)],) if self._rest else ()


class Lines:
    r"""Decodes lines: those that end as in a text file, or with *only_newlines* those that end with
    ``\n`` or ``\r\n``."""

    __slots__ = ("_decode", "_encoding", "_errors", "_number", "_splitter")

    def __init__(
        self, operator: str, limit: int, encoding: str, errors: str, *, only_newlines: bool
    ) -> None:
        name, mark = codecs.lookup(encoding).name, b""
        if name == "utf-8-sig":  # decodes each line as if it were the first one
            name = encoding = "utf-8"
            mark = codecs.BOM_UTF8
        self._splitter: Splitter | UniversalSplitter = (
            Splitter(operator, b"\n", limit, before=b"\r", mark=mark)
            if only_newlines
            else UniversalSplitter(operator, limit, mark=mark)
        )
        self._encoding = encoding
        self._errors = errors
        self._number = 0
        is_stateless = name in _STATELESS and errors in _COMMON_ERRORS
        self._decode = self._decode_together if is_stateless else self._decode_each

    def batches(self, chunk: Any) -> Iterator[Iterable[str]]:
        """The lines that end in *chunk*, some at a time."""
        return map(self._decode, self._splitter.batches(chunk))

    def end(self) -> Iterator[str]:
        return chain.from_iterable(map(self._decode, self._splitter.last_batch()))

    def _decode_together(self, lines: list[bytes]) -> Iterable[str]:
        """Decode in one call, which is possible where a line end is one in any context."""
        if not lines:
            return ()
        try:
            text = b"\n".join(lines).decode(self._encoding, self._errors)
        except UnicodeDecodeError:
            return self._decode_each(lines)
        self._number += len(lines)
        return text.split("\n")

    def _decode_each(self, lines: list[bytes]) -> Iterator[str]:
        encoding, errors = self._encoding, self._errors
        for line in lines:
            self._number += 1
            try:
                text = line.decode(encoding, errors)
            except UnicodeDecodeError as error:
                # Its message gives the position of the byte in the line.
                error.reason += f" ({self._splitter.operator}: in line {self._number})"
                raise
            yield text


class JsonLines:
    """Reads a JSON document from each line of bytes that is not blank."""

    __slots__ = ("_number", "_splitter")

    def __init__(self, limit: int) -> None:
        self._splitter = Splitter("json_lines", b"\n", limit, before=b"\r", mark=codecs.BOM_UTF8)
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
            except (ValueError, RecursionError) as error:
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
