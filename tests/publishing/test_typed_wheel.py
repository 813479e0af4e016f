"""The wheel is typed: a small project that checks strictly is checked against it, as installed."""

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from publishing.project import ROOT

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]

PROGRAM = """
from typing import assert_type

import reactive_aio as rx
from reactive_aio import Flow
from reactive_aio.connectors import Message, redis_streams
from reactive_aio.delivery import DeliveryFlow


async def price(name: str) -> float:
    return float(len(name))


async def main() -> None:
    prices = rx.just("a", "bb").map_async(price, concurrency=2, retry=3)
    assert_type(prices, Flow[float])
    assert_type(await prices.to_list(), list[float])
    async with redis_streams.connect("redis://127.0.0.1:6379") as redis:
        entries = redis_streams.source(redis, "orders", group="billing")
        assert_type(entries, DeliveryFlow[redis_streams.Entry])
    assert_type(Message(b"x").value, bytes | None)
"""
WRONG = """
import reactive_aio as rx

rx.just("a").map_async(len)
rx.just("a").map_async(print, max_concurrency=3)
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel; what it needs comes from the environment of the tests."""
    folder = tmp_path_factory.mktemp("typed")
    pip = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir")
    ended = subprocess.run([*pip, folder, ROOT], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    [wheel] = folder.glob("*.whl")
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    [site] = (folder / "venv").glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        assert "reactive_aio/py.typed" in archive.namelist()
        archive.extractall(site)
    [needs] = [path for path in sys.path if path.endswith("site-packages")]
    (site / "needs.pth").write_text(needs + "\n")
    return folder / "venv" / "bin" / "python"


def check(python: Path, folder: Path, program: str) -> "subprocess.CompletedProcess[str]":
    (folder / "program.py").write_text(program)
    (folder / "mypy.ini").write_text("[mypy]\nstrict = True\n")
    arguments = ["--python-executable", str(python), "program.py"]
    command = [sys.executable, "-m", "mypy", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


def test_a_strict_project_is_checked_against_the_wheel(python: Path, tmp_path: Path) -> None:
    ended = check(python, tmp_path, PROGRAM)
    assert ended.returncode == 0, ended.stdout


def test_mistakes_of_a_project_are_found(python: Path, tmp_path: Path) -> None:
    ended = check(python, tmp_path, WRONG)
    assert ended.returncode == 1
    assert ended.stdout.count("error:") >= 2, ended.stdout
