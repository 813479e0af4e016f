"""What untrusted bytes may cost: time that grows no faster than they do, whatever they are."""

# pyright: reportUnknownLambdaType=false

import json
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

import pytest
from hypothesis import given, strategies as some

from reactive_aio.asgi import HttpRequest
from reactive_aio.asgi.event_parser import EventParser
from reactive_aio.asgi.formats import negotiate
from reactive_aio.asgi.text_protocol.messages import InvalidMessage, parse_message
from reactive_aio.errors import FrameTooLong

FACTOR: Final = 8
MOST: Final = 4  # times what is proportional: a square would be 8 times that


def seconds(work: Callable[[], object]) -> float:
    """The time that *work* takes, without what other programs take."""

    def once() -> float:
        began = time.thread_time()
        with suppress(FrameTooLong, InvalidMessage):
            work()
        return time.thread_time() - began

    return min(once(), once())


def require_proportional(work: Callable[[int], object], size: int) -> None:
    """Raise AssertionError if *work* on a larger input takes more time for each of its bytes."""
    small, large = seconds(lambda: work(size)), seconds(lambda: work(size * FACTOR))
    assert large < (small + 0.0005) * FACTOR * MOST, f"{small * 1000:.2f} ms, {large * 1000:.2f} ms"


def parse_events(content: bytes, step: int, limit: int = 2**20) -> list[Any]:
    parser = EventParser("test", limit)
    chunks = (content[at : at + step] for at in range(0, len(content), step))
    return [event for chunk in chunks for event in parser.feed(chunk)]


# -- server-sent events ----------------------------------------------------------------------------
LINES = [b"x", b"data:x\n", b"\n", b"\r", b"\r\n", b":\n", b"id:5\n", b"data:\n\n", b"\xef\xbb\xbf"]


@pytest.mark.parametrize("step", [1, 65536])
def test_events_are_parsed_in_proportion_to_their_length(step: int) -> None:
    def parse(line: bytes, size: int) -> None:
        parse_events((line * size)[:size], step)

    for line in LINES:
        require_proportional(partial(parse, line), 2000)


PIECES = some.sampled_from([b"data", b"id", b"event", b"retry", b":", b" ", b"\r", b"\n", b"\r\n",
    b"\0", b"\xff", b"\xef\xbb\xbf", b"9" * 20, b"\n\n", b"x" * 40])  # fmt: skip


@given(some.lists(PIECES | some.binary(max_size=4), max_size=60), some.integers(1, 9))
def test_any_bytes_are_events_or_too_long_wherever_chunks_end(
    pieces: list[bytes], step: int
) -> None:
    content, limit = b"".join(pieces), 100
    try:
        events = parse_events(content, step, limit)
    except FrameTooLong:
        with pytest.raises(FrameTooLong):
            parse_events(content, len(content), limit)
        return
    assert events == parse_events(content, max(1, len(content)), limit)
    for event in events:
        assert len(event.data) <= limit
        assert not set(event.data) & {"\r"}
        assert not set(f"{event.id}{event.event}") & set("\r\n")
        assert "\0" not in str(event.id)


# -- the text protocol -----------------------------------------------------------------------------
MESSAGES: dict[str, Callable[[int], str]] = {
    "lists in lists": lambda size: "[" * size,
    "objects in objects": lambda size: '{"a":' * (size // 5),
    "digits": lambda size: f'{{"n":{"9" * size}}}',
    "numbers of many digits": lambda size: f"[{','.join(['9' * 4300] * (size // 4301 + 1))}]",
    "fractions": lambda size: f'{{"n":0.{"9" * size}}}',
    "exponents": lambda size: f"[{','.join(['1e308'] * (size // 6))}]",
    "escapes": lambda size: '{"type":"' + r"\ud83d" * (size // 6) + '"}',
    "names": lambda size: json.dumps({f"{each}": 1 for each in range(size // 9)}),
    "a route": lambda size: json.dumps({"type": "subscribe", "id": 1, "route": "a" * size}),
    "a detail": lambda size: json.dumps({"type": "error", "detail": "\ud800" * (size // 6)}),
}


@pytest.mark.parametrize("make", MESSAGES.values(), ids=MESSAGES)
def test_messages_are_parsed_in_proportion_to_their_length(make: Callable[[int], str]) -> None:
    texts = {size: make(size) for size in (8000, 8000 * FACTOR)}
    require_proportional(lambda size: parse_message(texts[size]), 8000)


# -- requests --------------------------------------------------------------------------------------
def names(count: int) -> list[tuple[bytes, bytes]]:
    return [(b"x-%d" % each, b"") for each in range(count)]


REQUESTS: dict[str, Callable[[int], object]] = {
    "one header": lambda size: HttpRequest({"headers": [(b"a", b"xyz")] * size * 8}).headers,
    "headers": lambda size: HttpRequest({"headers": names(size)}).headers,
    "a query": lambda size: HttpRequest({"query_string": b"a=b&" * size}).query,
    "Accept": lambda size: negotiate({"text/x": 1}, "a/b;q=0.1," * size),
    "parameters of Accept": lambda size: negotiate({"text/x": 1}, "a/b" + ";q=9" * size),
}


@pytest.mark.parametrize("read", REQUESTS.values(), ids=REQUESTS)
def test_a_request_is_read_in_proportion_to_its_length(read: Callable[[int], object]) -> None:
    require_proportional(read, 2000)
