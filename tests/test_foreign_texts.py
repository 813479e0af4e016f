"""Places that show what others have written, and do not make it safe to be shown."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

import ast
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import reactive_aio as rx
from reactive_aio import from_process, observe, rsocket
from reactive_aio._core.observation import registry
from reactive_aio.asgi import PeerFailed, from_sse, from_websocket
from reactive_aio.observe import command as top
from reactive_aio.observe.tracebacks import format_error
from reactive_aio.rsocket import command as rsocket_command
from reactive_aio.rsocket.command import parse_arguments
from reactive_aio.rsocket.protocol.errors import error_of
from tests.harness.one_run import in_one_run

PACKAGE = Path(rx.__file__).parent
URLS = {"uri", "uris", "url", "urls", "address_text"}
SAFE_URLS = {
    # An `Address` has no user, no password and no unknown parameter.
    ("rsocket/load_balancing.py", "each.uri"),
    ("rsocket/load_balancing.py", "member.uri"),
    ("rsocket/server.py", "self.uri"),
}
"""Expressions that cannot contain a secret."""
OF_ITS_OWN = {
    "f'{clear}{counts}, {now - self._start:.1f} s{end}'",  # numbers
    "f'{format_error(error)}\\n'",  # is printable itself
}
"""Texts that contain nothing of others."""
WRITERS = {"sys.stdout.write", "sys.stderr.write", "print"}


def modules(*rooms: str) -> Iterator[tuple[str, ast.Module]]:
    for room in rooms:
        for path in sorted((PACKAGE / room).rglob("*.py")):
            yield str(path.relative_to(PACKAGE)), ast.parse(path.read_text())


def shown_urls(module: ast.Module) -> Iterator[str]:
    """The URLs that f-strings contain as they are."""
    for node in ast.walk(module):
        if isinstance(node, ast.FormattedValue):
            value = node.value
            name = value.attr if isinstance(value, ast.Attribute) else getattr(value, "id", "")
            if name in URLS:
                yield ast.unparse(value)


def raw_writes(module: ast.Module) -> Iterator[str]:
    """What is written to a terminal neither as a constant nor by `printable`."""
    for node in ast.walk(module):
        if not isinstance(node, ast.Call) or ast.unparse(node.func) not in WRITERS:
            continue
        for given in node.args:
            if not isinstance(given, ast.Constant) and "printable(" not in ast.unparse(given):
                yield ast.unparse(given)


def test_no_text_contains_a_url_with_its_secrets() -> None:
    rooms = ("asgi", "observe", "rsocket", "spark", "_sources", "_operators")
    found = [(name, each) for name, module in modules(*rooms) for each in shown_urls(module)]
    assert [each for each in found if each not in SAFE_URLS] == [], "write without_secrets(url)"


def test_no_command_writes_what_a_terminal_would_act_upon() -> None:
    found = [
        (name, each)
        for name, module in modules("observe", "rsocket", "spark", "asgi")
        for each in raw_writes(module)
        if each not in OF_ITS_OWN
    ]
    assert found == [], "write printable(text)"


@pytest.mark.parametrize("text", ["f'{url!r}'", "f'at {config.url}: lost'", "f'{self.uri}'"])
def test_a_url_as_it_is_is_found(text: str) -> None:
    assert [*shown_urls(ast.parse(text))]
    assert not [*shown_urls(ast.parse("f'{without_secrets(url)} {shown_url}'"))]


def test_a_raw_write_is_found() -> None:
    assert [*raw_writes(ast.parse("sys.stdout.write(text)"))] == ["text"]
    assert not [*raw_writes(ast.parse("sys.stdout.write(printable(text)); print('done')"))]


# -- the texts themselves --------------------------------------------------------------------------
SECRET = "s3cret"
URLS_WITH_SECRETS = [
    "{scheme}://ann:s3cret@127.0.0.1:1/x?token=s3cret",
    "{scheme}://s3cret@127.0.0.1:1",
    "{scheme}://ann:s3cret/x@127.0.0.1:1/x",
    "{scheme}://ann:s3cret@127.0.0.1:port",
    "{scheme}://ann:s3cret@[::1",
    "{scheme}://127.0.0.1:1/x?key=s3cret#access=s3cret",
    "other://ann:s3cret@127.0.0.1:1",
]
FLOWS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "from_sse": ("http", lambda url: from_sse(url)),
    "from_websocket": ("ws", lambda url: from_websocket(url, route="x")),
    "proxy": ("http", lambda url: from_websocket("ws://127.0.0.1:1/", route="x", proxy=url)),
    "connect": ("tcp", lambda url: rx.from_awaitable(lambda: rsocket.connect(url))),
    "connect by ws": ("ws", lambda url: rx.from_awaitable(lambda: rsocket.connect(url))),
    "connect_balanced": ("ws", lambda url: rx.from_awaitable(rsocket.connect_balanced([url, url]))),
    "serve": ("tcp", lambda url: rx.from_awaitable(lambda: rsocket.serve(url, {}))),
    "command": ("tcp", lambda url: rx.just(parse_arguments([url]))),
    "from_process": ("http", lambda url: from_process(["false", url])),
    "a function": ("http", lambda url: rx.just(url).map(int)),
}


@in_one_run
@pytest.mark.parametrize("given", URLS_WITH_SECRETS)
@pytest.mark.parametrize("name", FLOWS)
async def test_no_error_name_or_figure_contains_the_secret_of_a_url(
    monkeypatch: pytest.MonkeyPatch, name: str, given: str
) -> None:
    monkeypatch.setattr(registry, "_names", {})
    scheme, make = FLOWS[name]
    texts: list[str] = []
    try:
        flow = make(given.format(scheme=scheme)).name(f"secrets of {name}")
        texts += [flow.explain(), repr(flow), repr(flow.graph())]
        try:
            await flow.to_list(limit=1)
        finally:
            texts += [str(flow.stats()), observe.report()]
    except Exception as error:
        texts += [*texts_of(error)]
    if name == "a function":  # which says what it likes
        texts.remove(next(each for each in texts if each.startswith("invalid literal")))
    assert texts
    assert [each for each in texts if SECRET in each] == []


def texts_of(error: BaseException | None) -> Iterator[str]:
    while error is not None:
        yield from (str(error), *getattr(error, "__notes__", ()))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


# -- control characters ----------------------------------------------------------------------------
EVIL = "\x1b]0;owned\x07\x1b[2Jall is well\r\u202e\x9b31m"


def evil(text: str) -> bool:
    """Whether a terminal would act upon *text*."""
    return any(each in text for each in "\x1b\x07\r\u202e\x9b")


async def failing(name: str) -> None:
    def parse(x: str) -> int:
        raise ValueError(f"cannot parse {x}")

    with suppress(ValueError):
        await rx.just(EVIL).map(parse).name(name).to_list(limit=1)


async def test_reports_and_tracebacks_are_printable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_names", {})
    await failing(f"orders {EVIL}")
    texts = [observe.report(), format_error(ValueError(EVIL))]
    assert "owned" in texts[0]
    assert [each for each in texts if evil(each)] == []


ERRORS: dict[str, Callable[[str], Exception]] = {
    "of a stream": lambda text: error_of(0x201, text.encode()),
    "of a connection": lambda text: error_of(0x101, text.encode()),
    "of a socket": lambda text: PeerFailed(500, text),
}


@pytest.mark.parametrize("make", ERRORS.values(), ids=ERRORS)
def test_the_text_of_a_peer_is_bounded_and_printable_in_errors(
    make: Callable[[str], Exception],
) -> None:
    assert "owned" in str(make(EVIL))
    assert not evil(str(make(EVIL)))
    assert len(str(make("x" * 1_000_000))) < 3000


def test_the_commands_write_no_control_characters_of_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(top, "_read", lambda path: f"{EVIL}\nnext")
    assert top.main(["top", "x", "--once"]) == 0
    written = capsys.readouterr()
    assert "owned" in written.out
    assert not evil(written.out)
    assert "\nnext" in written.out
    monkeypatch.setattr(top, "_read", refusing)
    assert top.main(["top", EVIL, "--once"]) == 1
    assert rsocket_command.main([f"tcp://{EVIL}"]) == 2
    written = capsys.readouterr()
    assert not evil(written.out + written.err)


def refusing(path: str) -> str:
    raise OSError(EVIL)


@pytest.mark.parametrize(("is_terminal", "is_raw"), [(True, False), (False, True)])
def test_elements_are_printable_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, is_raw: bool
) -> None:
    """A program that reads them gets them as they are."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    text = rsocket_command._formatted("text", [EVIL.encode()]).decode()
    assert evil(text) is is_raw
