"""Universal line ends, wherever the chunks end. (Separators: tests/operators/test_framing.py.)"""

from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from io import BytesIO, TextIOWrapper
from itertools import chain
from typing import TypeVar

import pytest
from hypothesis import given, strategies as st

from reactive_aio._shared.framing import Lines, UniversalSplitter, require_encoding
from reactive_aio.errors import FrameTooLong

T = TypeVar("T")
PIECES = st.lists(st.sampled_from([b"", b"a", b"bc", b"\n", b"\r", b"\r\n", b"\n\r"]), max_size=12)


def joined(batches: Iterable[Iterable[T]]) -> Iterator[T]:
    return chain.from_iterable(batches)


@given(PIECES)
def test_lines_end_where_those_of_a_text_file_end(chunks: list[bytes]) -> None:
    lines = Lines("lines", 100, "utf-8", "strict", only_newlines=False)
    found = [line for chunk in chunks for line in joined(lines.batches(chunk))]
    found += lines.end()
    text = TextIOWrapper(BytesIO(b"".join(chunks)), "utf-8")
    assert found == [line.removesuffix("\n") for line in text]


@given(PIECES)
def test_a_line_is_found_with_the_chunk_that_ends_it(chunks: list[bytes]) -> None:
    splitter = UniversalSplitter("lines", 100)
    found: list[bytes] = []
    for count, chunk in enumerate(chunks, 1):
        found += joined(splitter.batches(chunk))
        so_far = b"".join(chunks[:count])
        complete = so_far.splitlines()
        if so_far and not so_far.endswith((b"\n", b"\r")):
            complete.pop()
        assert found == complete


@given(PIECES, st.integers(1, 4))
def test_a_line_beyond_the_limit_is_refused_after_those_before_it(
    chunks: list[bytes], limit: int
) -> None:
    splitter = UniversalSplitter("lines", limit)
    expected = b"".join(chunks).splitlines()
    is_refused = any(len(line) > limit for line in expected)
    found: list[bytes] = []
    try:
        for chunk in chunks:
            found += joined(splitter.batches(chunk))
        found += joined(splitter.last_batch())
    except FrameTooLong:
        assert is_refused
        assert found == expected[: len(found)]
    else:
        assert found == expected
        assert not is_refused


@given(st.integers(1, 9), st.sampled_from([b"", b"\xef", b"\xef\xbb\xbf"]))
def test_a_byte_order_mark_is_left_out_once(size: int, start: bytes) -> None:
    data = start + b"a\r\n" + BOM_UTF8 + b"b\r"
    lines = Lines("lines", 4, "utf-8-sig", "replace", only_newlines=False)
    found: list[str] = []
    for at in range(0, len(data), size):
        found += joined(lines.batches(data[at : at + size]))
    found += lines.end()
    first = {b"": "a", b"\xef": "\ufffda", BOM_UTF8: "a"}[start]
    assert found == [first, "\ufeffb"]


def test_the_lines_of_a_chunk_before_the_one_that_is_too_long_are_found() -> None:
    lines = joined(UniversalSplitter("lines", 2).batches(b"a\nb\nccc\nd\n"))
    assert [next(lines), next(lines)] == [b"a", b"b"]
    with pytest.raises(FrameTooLong, match="lines: more than limit=2 bytes"):
        next(lines)


@pytest.mark.parametrize("only_newlines", [False, True])
def test_an_error_of_decoding_names_the_line_and_the_byte(only_newlines: bool) -> None:
    lines = Lines("x", 99, "utf-8", "strict", only_newlines=only_newlines)
    assert [*joined(lines.batches(b"a\nb\n\xe4"))] == ["a", "b"]
    with pytest.raises(UnicodeDecodeError) as raised:
        next(joined(lines.batches(b"b\n")))
    assert "0xe4 in position 0" in str(raised.value)
    assert "(x: in line 3)" in str(raised.value)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1252", "shift_jis"])
def test_the_usual_encodings_are_accepted(encoding: str) -> None:
    require_encoding("x", encoding, "replace")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "cp037"])
def test_an_encoding_with_other_line_ends_is_refused(encoding: str) -> None:
    with pytest.raises(ValueError, match=r"x: in the encoding .* does not end a line"):
        require_encoding("x", encoding, "strict")


@pytest.mark.parametrize(
    ("encoding", "errors"), [("no", "strict"), ("hex", "strict"), ("utf-8", "no")]
)
def test_an_unknown_encoding_or_handler_of_errors_is_refused(encoding: str, errors: str) -> None:
    with pytest.raises(LookupError):
        require_encoding("x", encoding, errors)
