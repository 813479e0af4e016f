"""The short examples, in this process: what each prints or serves. And the index lists all."""

import ast
import asyncio
import importlib
import importlib.util
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import httpx
import pytest
from playwright.async_api import async_playwright

from reactive_aio import just
from reactive_aio.asgi import PeerFailed, connect
from tests.asgi.browser import OPTIONS, find_chromium
from tests.asgi.serving import running

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
INDEX = ROOT / "docs" / "examples.md"


def program(name: str) -> ModuleType:
    """The module of an example, imported for one test."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PROGRAMS = sorted(EXAMPLES.rglob("*.py"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_what_an_example_imports_is_there(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of those that no test runs: what they import of this package or of each other."""
    monkeypatch.setattr(sys, "path", [str(EXAMPLES / "service"), str(EXAMPLES), *sys.path])
    local = {each.stem for each in EXAMPLES.iterdir()} | {"reactive_aio", "station"}
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in local:
            module = importlib.import_module(node.module or "")
            for name in node.names:
                if getattr(module, name.name, None) is None:  # a module of the package
                    importlib.import_module(f"{node.module}.{name.name}")


# -- those that end by themselves ------------------------------------------------------------------
@pytest.mark.parametrize("name", ["own_operator", "two_sides"])
def test_an_example_runs_without_warnings(name: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", EXAMPLES / f"{name}.py"],
        capture_output=True,
        text=True,
        timeout=50,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    # asyncio says that of any callback on a busy machine.
    warnings = re.sub(r"^Executing <.* took \d+\.\d+ seconds\n", "", ran.stderr, flags=re.MULTILINE)
    assert (ran.returncode, warnings) == (0, "")
    assert ran.stdout


@pytest.mark.slow
async def test_the_crawler_reads_each_page_once(capsys: pytest.CaptureFixture[str]) -> None:
    crawler = program("crawler")
    await crawler.main()
    assert capsys.readouterr().out.startswith("60 pages, ")
    async with crawler.sample_site(60) as url:
        assert len(await crawler.crawl(url, 7)) == 7


@pytest.mark.slow
def test_the_loader_stores_rows_and_keeps_dead_letters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program("csv_to_sqlite").run(12_345, tmp_path)
    assert capsys.readouterr().out == "12333 orders stored, 12 dead letters\n"
    with sqlite3.connect(tmp_path / "orders.db") as database:
        found = database.execute("select count(*), count(distinct id), sum(amount) from orders")
        count, distinct, amount = found.fetchone()
    database.close()
    assert count == distinct == 12_333
    assert amount == sum(i * 0.25 for i in range(12_345) if i % 1000 != 999)
    letters = (tmp_path / "dead.txt").read_text().splitlines()
    assert letters[0] == "999,customer 2,many\tcould not convert string to float: 'many'"


@pytest.mark.slow
def test_lines_of_files_that_grow_are_counted_by_level(tmp_path: Path) -> None:
    tail = program("tail_windows")
    paths = [tmp_path / "one.log", tmp_path / "other.log"]
    for path in paths:
        path.write_text("ERROR a\n" * 3 + "INFO b\n" * 5)

    async def first_counts() -> list[tuple[str, int]]:
        found: list[tuple[str, int]] = await tail.counts(paths, 0.1).take(2).to_list()
        return found

    assert sorted(asyncio.run(first_counts())) == [("ERROR", 6), ("INFO", 10)]


@pytest.mark.slow
async def test_a_burst_of_errors_is_one_alert(capsys: pytest.CaptureFixture[str]) -> None:
    alerts = program("process_alerts")
    lines = "import time; print('ERROR a'); print('ERROR b'); print('INFO c')"
    await alerts.main([sys.executable, "-c", f"{lines}; print('ERROR d'); raise SystemExit(3)"])
    shown = capsys.readouterr().out
    assert "exited with status 3" in shown
    assert shown.count("ALERT") <= 1


@pytest.mark.virtual_time
async def test_readers_of_tokens_see_the_same_answer(capsys: pytest.CaptureFixture[str]) -> None:
    tokens = program("tokens")
    await tokens.main()
    *lines, last = capsys.readouterr().out.splitlines()
    assert set(lines) == {
        "leaves: A reactive stream lets",
        *(f"{name}: {tokens.ANSWER}" for name in ("first", "middle", "late")),
    }
    assert last == "calls of the model: 1"


@pytest.mark.slow
async def test_the_sensor_is_plotted(capsys: pytest.CaptureFixture[str]) -> None:
    sensor = program("sensor")
    await sensor.main(0.3)
    *_, last = capsys.readouterr().out.rstrip().split("\r")
    assert set(last) <= set(sensor.BARS)
    assert last.strip()


# -- those that serve ------------------------------------------------------------------------------
@pytest.mark.slow
async def test_all_clients_read_one_ticker(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks: list[float] = []

    def uniform(_: float, high: float) -> float:
        ticks.append(high)
        return high

    monkeypatch.setattr("random.uniform", uniform)
    ticker = await asyncio.to_thread(program, "ticker")
    transport = httpx.ASGITransport(ticker.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://server") as http:
        left = (await http.get("/flows")).json()["left"]  # those of a test before
        answers = await asyncio.gather(*(http.get("/prices?n=2") for _ in range(3)))
        figures = (await http.get("/flows")).json()
    found = [re.findall(r'"price":([\d.]+)', answer.text) for answer in answers]
    assert all(float(second) - float(first) == 1 for first, second in found)
    # With a ticker for each client, there would be more ticks than prices.
    assert len(ticks) <= max(float(last) for _, last in found) - 100 + 1
    assert figures == {"clients": 0, "left": left + 3}


@pytest.fixture
def chromium() -> str:
    return find_chromium()


@pytest.mark.slow
async def test_what_one_writes_the_others_in_the_room_read(chromium: str) -> None:
    chat = await asyncio.to_thread(program, "chat")
    async with running(chat.app) as address, async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=chromium, args=[*OPTIONS, "--disable-dev-shm-usage"]
        )
        page = await browser.new_page()
        await page.goto(f"http://{address}/")
        await page.fill("#text", "<b>hello</b>")
        await page.press("#text", "Enter")
        await page.wait_for_selector("#lines li")
        async with connect(f"ws://{address}/live", {"room.lobby": just("from Python")}) as peer:
            lines = await peer.request_stream(route="room.lobby").take(2).to_list()
            with pytest.raises(PeerFailed, match="the rooms are lobby, kitchen"):
                await peer.request_stream(route="room.cellar").first()
            await page.wait_for_function("() => document.querySelectorAll('li').length == 2")
        shown = await page.inner_text("#lines")
        await browser.close()
    assert lines == ["<b>hello</b>", "from Python"]
    assert shown.split("\n") == lines


@pytest.mark.slow
async def test_a_service_that_is_stopped_saves_what_it_has_read() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-X", "dev", str(EXAMPLES / "graceful_shutdown.py")),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    assert b"press Ctrl-C" in await process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    shown = (await process.stdout.read()).decode()
    assert await process.wait() == 0
    assert "discarded 0" in shown
    assert "missing: none" in shown


# -- the index -------------------------------------------------------------------------------------
def programs() -> Iterator[tuple[str, str]]:
    """Each program, and the first line of its docstring."""
    for path in sorted(EXAMPLES.glob("*.py")):
        text = path.read_text("utf-8")
        if block := re.search(r"# /// script\n(.*?)# ///\n\"\"\"(.*?)\n", text, re.DOTALL):
            declared = tomllib.loads(re.sub(r"^# ?", "", block[1], flags=re.MULTILINE))
            assert "reactive-aio" in declared["dependencies"][0]
            yield path.stem, block[2]


def test_the_index_lists_each_example_with_its_command() -> None:
    text = INDEX.read_text("utf-8")
    rows = re.findall(r"^\| \[(\w+)\]\(\.\./examples/(\w+)\.py\) \| .+ \| `(.+?)` \|$", text, re.M)
    listed = {name for name, *_ in rows}
    assert listed == {name for name, _ in programs()}, "add a row to docs/examples.md"
    for name, file, command in rows:
        assert file == name
        assert command.split()[:2] == ["python", f"examples/{name}.py"]


def test_each_example_begins_with_what_it_shows_and_its_command() -> None:
    for name, shows in programs():
        assert shows.endswith(".") or ":" in shows, name
        assert f"\n    python examples/{name}.py" in (EXAMPLES / f"{name}.py").read_text("utf-8")


def test_the_notebook_is_in_the_index() -> None:
    assert "(../examples/notebook.ipynb)" in INDEX.read_text("utf-8")
    assert json.loads((EXAMPLES / "notebook.ipynb").read_text("utf-8"))["nbformat"] == 4
