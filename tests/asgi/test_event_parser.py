"""Server-sent events are parsed as the HTML standard says, wherever the chunks end."""

import pytest
from hypothesis import given, strategies as st

from reactive_aio.asgi import Event
from reactive_aio.asgi.event_parser import EventParser
from reactive_aio.asgi.formats import EventStream, to_json
from reactive_aio.errors import FrameTooLong


def parse(*chunks: bytes, limit: int = 1000) -> list[tuple[str, str | int | None, str | None]]:
    parser = EventParser("test", limit)
    found = [event for chunk in chunks for event in parser.feed(chunk)]
    return [(each.data, each.id, each.event) for each in found]


CASES: dict[str, tuple[bytes, list[tuple[str, str | None, str | None]]]] = {
    "several lines of data": (b"data: a\ndata:b\ndata\ndata:  c\n\n", [("a\nb\n\n c", None, None)]),
    "a type, for one event": (b"event: e\ndata: 1\n\ndata: 2\n\n",
                              [("1", None, "e"), ("2", None, None)]),
    "an id, for all that follow": (b"id: 7\ndata: 1\n\ndata: 2\n\nid\ndata: 3\n\n",
                                   [("1", "7", None), ("2", "7", None), ("3", None, None)]),
    "an id with NUL": (b"id: 1\ndata: 1\n\nid: 2\0\ndata: 2\n\n",
                       [("1", "1", None), ("2", "1", None)]),
    "an event without data": (b"event: e\nid: 3\n\ndata: 1\n\n", [("1", "3", None)]),
    "comments and unknown fields": (b": hi\n\nother: x\ndata: 1\n:\n\n", [("1", None, None)]),
    "a byte order mark": (b"\xef\xbb\xbfdata: 1\n\n", [("1", None, None)]),
    "a byte order mark later": (b"data: 1\n\n\xef\xbb\xbfdata: 2\n\n", [("1", None, None)]),
    "an event that the end cuts": (b"data: 1\n\ndata: 2\n", [("1", None, None)]),
    "text that is not UTF-8": (b"data: \xff\n\n", [("\ufffd", None, None)]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"], ids=["LF", "CR", "CRLF"])
def test_events_are_parsed_as_the_standard_says(
    case: tuple[bytes, list[tuple[str, str | None, str | None]]], end: bytes
) -> None:
    text, expected = case
    text = text.replace(b"\n", end)
    assert parse(text) == expected
    assert parse(*(text[i : i + 1] for i in range(len(text)))) == expected


def test_the_delay_for_reconnecting_and_the_last_id_are_kept() -> None:
    parser = EventParser("test", 1000, "before")
    assert [*parser.feed(b"retry: 2500\nretry: 1x\nretry: -1\n\n")] == []
    assert (parser.retry, parser.last_event_id) == (2.5, "before")
    [event] = parser.feed(b"data: 1\n\n")
    assert event.id == "before"
    assert [*parser.feed(b"id: unfinished\n")] == []
    assert parser.last_event_id == "before", "an event counts when it is whole"
    assert [*parser.feed(b"\n")] == []
    assert parser.last_event_id == "unfinished"


@pytest.mark.parametrize(
    "text", [b"data: " + b"x" * 100, b":" + b"x" * 200 + b"\n", b"data: 12345\n" * 20]
)
def test_an_event_that_is_too_long_is_refused(text: bytes) -> None:
    with pytest.raises(FrameTooLong, match="test: more than limit=100 bytes"):
        parse(text, b"x" * 20, limit=100)


CHARACTERS = "ab: é\x0b\x0c\x1c\x85\u2028\ufeff😀"
ids = st.none() | st.text(CHARACTERS, min_size=1, max_size=5)


@given(
    st.lists(st.tuples(st.text(CHARACTERS + "\r\n\0", max_size=8), ids, ids), max_size=5),
    st.integers(min_value=1, max_value=9),
)
def test_what_sse_writes_is_read_back(
    events: list[tuple[str, str | None, str | None]], step: int
) -> None:
    form: EventStream[str] = EventStream("sse", str, None, None, None)
    written = b"".join(form.element(Event(data, id, name)) for data, id, name in events)
    written = form.opening() + written + form.completed()
    found = parse(*(written[i : i + step] for i in range(0, len(written), step)))
    assert found.pop()[::2] == ("{}", "complete")
    expected = [(data.replace("\r\n", "\n").replace("\r", "\n"), name) for data, _, name in events]
    assert [(data, name) for data, _, name in found] == expected
    last = None
    for (_, id, _), (_, given_id, _) in zip(found, events, strict=True):
        last = given_id or last
        assert id == last


def test_json_is_on_one_line() -> None:
    form: EventStream[object] = EventStream("sse", to_json, None, None, None)
    assert parse(form.element({"a": "b\nc"})) == [('{"a":"b\\nc"}', None, None)]
