"""lines, json_lines and delimited: chunks that end anywhere, limits, and errors."""

import asyncio
import json
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping
from itertools import chain, takewhile
from typing import Any

import pytest
from hypothesis import given, strategies as st

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio._shared.framing import Lines, Splitter
from reactive_aio.errors import FrameTooLong, NotAnElement
from reactive_aio.testing import SubscriberProbe
from tests.cases import Identities, Needs
from tests.operators.streams import slow
from tests.operators.ways import Failed, Sample, in_every_way


def numbered(n: int) -> list[bytes]:
    return [f"{x}\n".encode() for x in range(n)]


OF_LENGTH: Mapping[str, Callable[[int], Flow[Any]]] = {
    "lines": lambda n: r.from_iterable(numbered(n)).lines(),
    "lines: of one chunk": lambda n: r.just(b"".join(numbered(n))).lines(),
    "lines: asynchronous": lambda n: slow(numbered(n)).lines(),
    "json_lines": lambda n: r.from_iterable(numbered(n)).json_lines(),
    "delimited": lambda n: r.from_iterable(numbered(n)).delimited(b"\n"),
}
FAILING: Mapping[str, Callable[[], Flow[Any]]] = {
    "lines": lambda: slow([b"a\n"], error=Failed()).lines(),
    "json_lines": lambda: r.just(b"1\n{").json_lines(),
    "delimited": lambda: r.just(b"12345").delimited(b"\n", limit=3),
}
INFINITE: Mapping[str, Callable[[], Flow[Any]]] = {
    "lines": lambda: r.generate(lambda x: (b"%d\n" % x, x + 1), 0).lines(),
    "json_lines": lambda: r.generate(lambda x: (b"%d\n" % x, x + 1), 0).json_lines(),
    "delimited": lambda: r.generate(lambda x: (b"%d;" % x, x + 1), 0).delimited(b";"),
}


def as_json(x: Any) -> bytes:
    return json.dumps(x).encode() + b"\n"


IDENTITIES: Identities = {"json_lines": lambda up: up.map(as_json).json_lines()}
NO_IDENTITY: Mapping[str, str] = {
    "lines": "it makes text of bytes; json_lines has the same stage",
    "delimited": "it makes bytes of bytes; json_lines has the same stage",
}

PIECES = st.lists(st.sampled_from([b"", b"a", b"-", b"--", b"b-c", b"---"]), max_size=12)


@given(PIECES)
def test_the_parts_do_not_depend_on_where_chunks_end(chunks: list[bytes]) -> None:
    splitter = Splitter("delimited", b"--", 100)
    found = [part for chunk in chunks for part in splitter.feed(chunk)]
    found += splitter.end()
    expected = b"".join(chunks).split(b"--")
    assert found == (expected if expected[-1] else expected[:-1])


@given(PIECES, st.integers(1, 5))
def test_a_part_is_refused_beyond_the_limit(chunks: list[bytes], limit: int) -> None:
    splitter = Splitter("delimited", b"--", limit)
    longest = max(map(len, b"".join(chunks).split(b"--")))
    try:
        found = [part for chunk in chunks for part in splitter.feed(chunk)]
        found += splitter.end()
    except FrameTooLong:
        assert longest > limit
    else:
        assert longest <= limit


async def test_the_last_part_is_refused_beyond_the_limit() -> None:
    found, error = await outcome(r.just(b"ab\r\nabcd").delimited(b"\r\n", limit=3))
    assert found == [b"ab"]
    assert isinstance(error, FrameTooLong)
    half_a_separator = r.just(b"abc\r").delimited(b"\r\n", limit=4)
    assert await half_a_separator.to_list() == [b"abc\r"]


class TestInEveryWay:
    async def test_lines(self) -> None:
        def change(flow: Flow[bytes]) -> Flow[str]:
            return flow.lines()

        chunks = [b"a\nb", b"c\r\n", b"\n", b"d"]
        await in_every_way(Sample(change, chunks, ["a", "bc", "", "d", "|"]))
        await in_every_way(Sample(change, [b"a\nb"], ["a", Failed], fails=True))
        await in_every_way(Sample(change, [], ["|"]))

    async def test_json_lines(self) -> None:
        def change(flow: Flow[bytes]) -> Flow[Any]:
            return flow.json_lines()

        chunks = [b'{"a": 1}\n[2', b"]\n\n \n", b"3"]
        await in_every_way(Sample(change, chunks, [{"a": 1}, [2], 3, "|"]))


@pytest.mark.virtual_time
async def test_no_chunk_is_requested_without_demand() -> None:
    log: list[bytes] = []
    chunks = slow([b"1\n", b"2\n", b"3\n"]).do_on_next(log.append)
    for flow in (chunks.lines(), chunks.json_lines(), chunks.delimited(b"\n")):
        log.clear()
        probe = SubscriberProbe[Any](1).subscribed_to(flow)
        await asyncio.sleep(1)
        assert (len(probe.signals), log) == (1, [b"1\n"])
        probe.request(1)
        await asyncio.sleep(1)
        assert (len(probe.signals), log) == (2, [b"1\n", b"2\n"])
        probe.cancel()


async def outcome(flow: Flow[Any]) -> tuple[list[Any], Exception]:
    found: list[Any] = []
    with pytest.raises(Exception) as raised:  # noqa: PT011 - the caller looks at it
        await flow.for_each(found.append)
    assert isinstance(raised.value, Exception)
    return found, raised.value


async def test_a_line_that_is_too_long_fails_after_the_others() -> None:
    found, error = await outcome(r.just(b"abc\ndefg\nh\n").lines(limit=3))
    assert found == ["abc"]
    assert isinstance(error, FrameTooLong)
    assert "lines: more than limit=3 bytes without a separator" in str(error)
    endless = r.generate(lambda _: (b"xxx", None), None).lines(limit=1000)
    assert isinstance((await outcome(endless))[1], FrameTooLong)


ENDS = st.lists(
    st.sampled_from([b"", b"a", b"bc", b"\r", b"\n", b"\r\n", b"\xef\xbb\xbf", b"\xef", b"\xbb"]),
    max_size=12,
)


def plain_lines(data: bytes) -> list[bytes]:
    *ended, rest = data.split(b"\n")
    return [line.removesuffix(b"\r") for line in ended] + ([rest] if rest else [])


@given(ENDS, st.sampled_from(["utf-8", "utf-8-sig", "latin-1", "shift_jis"]), st.integers(1, 9))
def test_lines_do_not_depend_on_where_chunks_end(
    chunks: list[bytes], encoding: str, limit: int
) -> None:
    r"""The limit is that of a line without its end; a lone \r is a part of it; a mark is none."""
    data = b"".join(chunks)
    if encoding == "utf-8-sig":
        data = data.removeprefix(BOM_UTF8)
    expected = plain_lines(data)
    lines = Lines("lines", limit, encoding, "backslashreplace", only_newlines=True)
    found: list[str] = []
    try:
        for chunk in chunks:
            found += chain.from_iterable(lines.batches(chunk))
        found += lines.end()
    except FrameTooLong:
        assert max(map(len, expected)) > limit
        expected = [*takewhile(lambda line: len(line) <= limit, expected)]
    else:
        assert max(map(len, expected), default=0) <= limit
    used = encoding.removesuffix("-sig")
    assert found == [line.decode(used, "backslashreplace") for line in expected]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
async def test_a_limit_does_not_count_the_end_of_a_line(end: bytes) -> None:
    data = end.join((b"123", b"456", b""))
    assert await r.just(data).lines(limit=3).to_list() == ["123", "456"]
    assert await r.from_iterable([bytes([x]) for x in data]).lines(limit=3).to_list() == [
        "123",
        "456",
    ]
    assert await r.just(data).json_lines(limit=3).to_list() == [123, 456]
    for flow in (r.just(data).lines(limit=2), r.just(data).json_lines(limit=2)):
        assert isinstance((await outcome(flow))[1], FrameTooLong)


async def test_a_byte_order_mark_is_left_out_once() -> None:
    data = BOM_UTF8 + b"1\n" + BOM_UTF8 + b"2\n"
    for flow in (r.just(data), r.from_iterable([bytes([x]) for x in data])):
        assert await flow.lines(encoding="utf-8-sig", limit=4).to_list() == ["1", "\ufeff2"]
        assert await flow.lines().to_list() == ["\ufeff1", "\ufeff2"]
        assert await flow.json_lines(limit=4).to_list() == [1, 2]


async def test_other_encodings_and_errors() -> None:
    flow = r.just("ä\nb".encode("latin-1"))
    assert await flow.lines(encoding="latin-1").to_list() == ["ä", "b"]
    assert await flow.lines(errors="replace").to_list() == ["\N{REPLACEMENT CHARACTER}", "b"]
    assert isinstance((await outcome(flow.lines()))[1], UnicodeDecodeError)
    with pytest.raises(LookupError):
        flow.lines(encoding="klingon")


async def test_json_errors_name_the_line() -> None:
    found, error = await outcome(r.just(b"1\n\n{no}\n").json_lines())
    assert found == [1]
    assert "json_lines: line 3 is not a JSON document" in str(error)
    assert "b'{no}'" in str(error)
    found, error = await outcome(r.just(b"1\nnull\n").json_lines())
    assert isinstance(error, NotAnElement)
    assert "line 2 is null" in str(error)
    found, error = await outcome(r.just(b"1\n", b"[" * 100_000).json_lines())
    assert found == [1]
    assert isinstance(error, ValueError)
    assert "json_lines: line 2 is not a JSON document: maximum recursion depth" in str(error)


@pytest.mark.parametrize("element", ["text", 3, [b"a"]])
async def test_other_elements_than_bytes_are_named(element: Any) -> None:
    _, error = await outcome(r.just(element).lines())
    assert "lines: its elements must be bytes" in str(error)
    assert "has divided need no lines, but map" in str(error)


async def test_bytearrays_and_views_are_bytes() -> None:
    flow: Flow[Any] = r.just(bytearray(b"a;b"), memoryview(b"c;"))
    assert await flow.delimited(b";").to_list() == [b"a", b"bc"]


@pytest.mark.parametrize("separator", [b"", "\n", None])
def test_a_wrong_separator_is_refused(separator: Any) -> None:
    with pytest.raises(ValueError, match="delimited: separator must be bytes"):
        r.just(b"a").delimited(separator)


def test_a_wrong_limit_is_refused() -> None:
    for make in (lambda: r.just(b"").lines(limit=0), lambda: r.just(b"").json_lines(limit=-1)):
        with pytest.raises(ValueError, match="limit must be at least 1"):
            make()


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Batches and windows": {
        "lines or records of bytes": "lines json_lines delimited",
    },
}


async def example_lines() -> None:
    chunks = r.just(b"tea,3\nmi", b"lk,1\n")
    print(await chunks.lines().to_list())


async def example_json_lines() -> None:
    chunks = r.just(b'{"n": 1}\n{"n"', b": 2}\n")
    print(await chunks.json_lines().to_list())


async def example_delimited() -> None:
    chunks = r.just(b"a.txt\0b.", b"txt\0")
    print(await chunks.delimited(b"\0").to_list())
