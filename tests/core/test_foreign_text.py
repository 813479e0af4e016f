"""What others have written, as errors and reports show it."""

import pytest

from reactive_aio._core.foreign_text import excerpt, printable, without_secrets


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ü, 日本 and 👩\u200d💻", "plain, ü, 日本 and 👩\u200d💻"),
        ("two\n\tlines\xa0here", "two\n\tlines\xa0here"),
        ("\x1b]0;owned\x07", "\\x1b]0;owned\\x07"),
        ("a\rb\x9b31m\x7f\x00", "a\\rb\\x9b31m\\x7f\\x00"),
        ("\u202edrawkcab\u2028next", "\\u202edrawkcab\\u2028next"),
        ("\ud800", "\\ud800"),
    ],
)
def test_nothing_that_a_terminal_acts_upon_is_left(text: str, shown: str) -> None:
    assert printable(text) == shown
    shown.encode()


def test_an_excerpt_is_bounded_and_printable() -> None:
    assert excerpt("short") == "short"
    assert excerpt("\x1b" * 1000, 3) == "\\x1b" * 3 + "…"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no URL at all: a@b?c=d", "no URL at all: a@b?c=d"),
        ("http://h:1/path", "http://h:1/path"),
        ("http://[::1]:80/a@b", "http://[::1]:80/a@b"),
        ("http://ann:pw@h:1/x", "http://***@h:1/x"),
        ("http://token@h", "http://***@h"),
        ("http://a@b:c@h/", "http://***@h/"),
        ("http://ann:p/w?x#y@h:1/x", "http://***@h:1/x"),
        ("ws://h/x?token=pw&a=b#access=pw", "ws://h/x?token=***&a=***#access=***"),
        ("ws://h/x?pw", "ws://h/x?***"),
        ("tcp://h:1?route=a.b&n=4&key=pw", "tcp://h:1?route=a.b&n=4&key=***"),
        ("sc://h:1/;token=pw", "sc://h:1/;token=***"),
        ("from 'http://u:pw@h', to https://v:pw@i.", "from 'http://***@h', to https://***@i."),
    ],
)
def test_secrets_of_urls_are_hidden(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


@pytest.mark.parametrize("text", ["a://" * 20_000, "a://b:" + "c:" * 50_000, "?a=" * 50_000])
def test_long_texts_cost_little(text: str) -> None:
    """Backtracking over such a text would take minutes."""
    assert len(without_secrets(f"http://{text}")) < 2 * len(text) + 20
