"""What `--quick` and `--thorough` select, and which tests share a worker."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.warm_python import WarmPython

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
MARKS = ("virtual_time", "spark", "slow", "thorough")

TESTS = """
import pytest
from tests.harness.effort import scaled

def test_plain(): assert scaled(80) == {budget}
@pytest.mark.spark
def test_spark(): pass
@pytest.mark.slow
def test_slow(): pass
@pytest.mark.thorough
def test_thorough(): pass
"""


python = WarmPython(imports=["pytest", "anyio"])


@pytest.fixture(scope="module", autouse=True)
def end_python() -> Iterator[None]:
    yield
    python.end()


@pytest.fixture(autouse=True)
def only_these_plugins(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    pytester.makeini("\n".join(["[pytest]", "markers =", *(f"    {mark}: it" for mark in MARKS)]))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
    monkeypatch.delenv("SCHEDULES", raising=False)


def run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    plugins = ("-p", "tests.harness.effort", "-p", "tests.harness.groups")
    return python.run_pytest(pytester, *plugins, "-W", "error", *options)


@pytest.mark.parametrize(
    ("options", "budget", "passed"),
    [(("--quick",), 2, 1), ((), 2, 3), (("--thorough",), 80, 4)],
    ids=["quick", "normal", "thorough"],
)
def test_an_option_selects_tests_and_budgets(
    pytester: pytest.Pytester, options: tuple[str, ...], budget: int, passed: int
) -> None:
    pytester.makepyfile(TESTS.format(budget=budget))
    expected = {"passed": passed, **({"deselected": 4 - passed} if passed < 4 else {})}
    assert run(pytester, *options).parseoutcomes() == expected


def test_quick_and_thorough_exclude_each_other(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--quick", "--thorough")
    result.stderr.fnmatch_lines(["*--quick and --thorough exclude each other*"])


SHARING = """
import os
from pathlib import Path
def test_one(): Path("{name}-one").write_text(str(os.getpid()))
def test_two(): Path("{name}-two").write_text(str(os.getpid()))
"""


def test_one_worker_runs_a_file_and_one_worker_runs_all_tests_of_spark(
    pytester: pytest.Pytester,
) -> None:
    folder = pytester.mkdir("tests") / "spark"
    folder.mkdir()
    for name in ("a", "b", "c", "d"):
        path = (folder if name in "ac" else pytester.path) / f"test_{name}.py"
        path.write_text(SHARING.format(name=name))
    result = run(pytester, "-p", "xdist", "-n", "2", "--dist", "loadfile", ".")
    assert result.parseoutcomes() == {"passed": 8}
    found = {path.name: path.read_text() for path in pytester.path.glob("?-*")}
    assert len(found) == 8
    assert found["b-one"] == found["b-two"]
    assert found["d-one"] == found["d-two"]
    assert len({found[f"{name}-{test}"] for name in "ac" for test in ("one", "two")}) == 1
    assert len(set(found.values())) == 2, "all workers have something to do"
