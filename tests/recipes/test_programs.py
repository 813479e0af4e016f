"""Each recipe is a program: short, with help, and with one line for what ends it at once."""

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

RECIPES = Path(__file__).parents[2] / "examples" / "recipes"
PROGRAMS = sorted(RECIPES.glob("[a-z]*.py"))
MOST_LINES = 120
NO_DATABASE = ["--postgres", "postgresql://x:x@127.0.0.1:9/x"]
UNREACHABLE = {
    "http_pages": ["ftp://127.0.0.1:9/list"],
    "nats_jetstream": ["--nats", "nats://127.0.0.1:9"],
    "postgres_copy": [*NO_DATABASE, "--query", "select 1", "--table", "t", "--columns", "c"],
    "postgres_outbox": NO_DATABASE,
    "kafka_log": ["--servers", "127.0.0.1:9", "topic"],
    "redis_streams": ["--redis", "redis://127.0.0.1:9"],
    "follow_files": ["--to", "http://127.0.0.1:9/", "/no/such/file.log"],
}
"""Arguments with which there is nothing to connect to, or to read."""
TRIES_AGAIN = {"sse_resume", "websocket_client"}
"""Those that do not end where there is no server."""


def run(path: Path, arguments: list[str], patch: pytest.MonkeyPatch) -> object:
    """Run a program in this process; return what it has given to ``sys.exit``."""
    patch.setattr(sys, "argv", [str(path), *arguments])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    return ended.value.code


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_it_is_short_and_has_help(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    assert f"python examples/recipes/{path.name}" in text, "its first lines show how to run it"
    assert run(path, ["--help"], monkeypatch) == 0
    assert f"usage: {path.name}" in capsys.readouterr().out


def test_each_recipe_is_tried_without_its_server() -> None:
    assert {path.stem for path in PROGRAMS} == {*UNREACHABLE, *TRIES_AGAIN}


@pytest.mark.slow  # the client of NATS tries for seconds
@pytest.mark.usefixtures("expects_error_logs")  # aiokafka reports each attempt
@pytest.mark.parametrize("name", UNREACHABLE)
def test_an_error_is_one_line(
    name: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    code: Any = run(RECIPES / f"{name}.py", UNREACHABLE[name], monkeypatch)
    assert isinstance(code, str), "a message for sys.exit"
    assert len(code.splitlines()) == 1
    assert "Traceback" not in capfd.readouterr().err
