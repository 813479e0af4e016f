"""The pytest plugin: one test for each law, and no effect on other tests."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

import pytest

from reactive_aio.tck import cases
from tests.harness.warm_python import WarmPython
from tests.tck import hostile_candidates

pytestmark = pytest.mark.slow

ROOT: Final = Path(__file__).parents[2]
MODULE: Final = "reactive_aio.tck.pytest_plugin"
# If the package is installed, its entry point has registered the plugin already.
PLUGIN: Final = "reactive_aio" if entry_points(group="pytest11", name="reactive_aio") else MODULE
LAW: Final = "publisher-spec109_subscribes_first-MUST"
GOOD: Final = "--rs-tck=tests.tck.hostile_candidates:good"
FAILS: Final = "--rs-tck=tests.tck.hostile_candidates:fails"


@pytest.fixture(autouse=True)
def importable(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    # Other plugins take a second to import in each process.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)


python: Final = WarmPython(imports=["pytest", "tests.tck.hostile_candidates"])
WARNINGS: Final = ("-W", "error", "-W", "ignore:Module already imported")
"""Errors; but pytest cannot rewrite the assertions of what the process has imported before."""


@pytest.fixture(scope="module", autouse=True)
def end_python() -> Iterator[None]:
    yield
    python.end()


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """pytest in a process of its own, with the plugin and warnings as errors."""
    return python.run_pytest(pytester, "-p", PLUGIN, *WARNINGS, *arguments)


def matching(result: pytest.RunResult, lines: Iterable[str]) -> None:
    result.stdout.fnmatch_lines(list(lines))


# -- on the command line ---------------------------------------------------------------------------
def test_a_factory_has_one_test_for_each_law_and_their_number_is_reported(
    pytester: pytest.Pytester,
) -> None:
    result = run(pytester, GOOD, "-v")
    count = len(cases(hostile_candidates.good()))
    assert result.ret == 0
    matching(
        result,
        [
            "rs-tck: tests.tck.hostile_candidates:good",
            f"*collected {count} items",
            f"rs-tck: {count} laws",
            f"rs-tck::tests.tck.hostile_candidates:good::{LAW} PASSED*",
        ],
    )


@pytest.mark.thorough
def test_no_other_tests_run_unless_they_are_named(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_mine(): pass")
    only = ("-k", "spec109_subscribes_first or test_mine")
    run(pytester, GOOD, *only).assert_outcomes(
        passed=1, deselected=len(cases(hostile_candidates.good())) - 1
    )
    run(pytester, GOOD, ".", *only).assert_outcomes(
        passed=2, deselected=len(cases(hostile_candidates.good())) - 1
    )


def test_a_broken_law_is_explained_without_a_traceback(pytester: pytest.Pytester) -> None:
    result = run(pytester, FAILS, "-k", "spec109_subscribes_first")
    assert result.ret == 1
    matching(
        result,
        [
            "*subscribe() raised ValueError('not today')",
            "rule 1.9 MUST: *",
            "tried    *",
            "demand   >*",
            "*^-- 1.9: subscribe() raised*",
            "*0.000  subscribe()",
            f"FAILED rs-tck::tests.tck.hostile_candidates:fails::{LAW}*",
        ],
    )
    result.stdout.no_fnmatch_line("*pytest_plugin.py*")


@pytest.mark.thorough
def test_a_broken_should_is_an_expected_failure_except_with_strict(
    pytester: pytest.Pytester,
) -> None:
    slow = (
        "--rs-tck=tests.tck.hostile_candidates:slow",
        "-k",
        "spec304_request_returns_quickly",
        "-rx",
    )
    pytester.makeconftest(
        "from reactive_aio.tck.timeouts import Timeouts\n"
        "Timeouts.__init__.__defaults__ = tuple(\n"
        "    0.1 if each == 0.5 else each for each in Timeouts.__init__.__defaults__\n"
        ")\n"
    )
    result = run(pytester, *slow)
    result.assert_outcomes(xfailed=1, deselected=len(cases(hostile_candidates.slow())) - 1)
    matching(result, ["XFAIL rs-tck::*-SHOULD - SHOULD: rule 3.4: *"])
    run(pytester, *slow, "--rs-tck-strict").assert_outcomes(
        failed=1, deselected=len(cases(hostile_candidates.slow())) - 1
    )


def test_a_law_that_cannot_judge_is_skipped_with_the_reason(pytester: pytest.Pytester) -> None:
    result = run(pytester, GOOD, "-k", "spec104", "-rs")
    matching(result, ["SKIPPED *the candidate has no failing_publisher"])


def test_laws_are_selected_by_marker(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_mine(): pass")
    result = run(pytester, GOOD, ".", "-m", "rs_tck(rule='1.9')", "--strict-markers")
    passed = sum(case.law.rule == "1.9" for case in cases(hostile_candidates.good()))
    assert sum(result.parseoutcomes().get(each, 0) for each in ("passed", "skipped")) == passed
    matching(result, [f"rs-tck: {passed} laws"])


def test_several_factories_are_judged_one_after_the_other(pytester: pytest.Pytester) -> None:
    result = run(pytester, GOOD, FAILS, GOOD, "-k", "spec109_subscribes_first")
    outcomes = result.parseoutcomes()
    assert (outcomes["passed"], outcomes["failed"]) == (1, 1)


@pytest.mark.parametrize(
    ("where", "line"),
    [
        ("tests.tck.missing:good", "--rs-tck *: there is no module 'tests.tck.missing'*"),
        (
            "tests.tck.hostile_candidates:missing",
            "--rs-tck *: tests.tck.hostile_candidates has no 'missing'",
        ),
        ("tests.tck.hostile_candidates:raises", "E   ZeroDivisionError: no candidate"),
    ],
)
def test_an_invalid_factory_is_a_collection_error(
    where: str, line: str, pytester: pytest.Pytester
) -> None:
    result = run(pytester, f"--rs-tck={where}")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    matching(result, [line])


@pytest.mark.thorough
def test_the_current_folder_is_searched(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(mine="from tests.tck.hostile_candidates import good")
    # By the script, since `python -m` would add the current folder to sys.path.
    script = Path(sys.executable).with_name("pytest")
    result = pytester.run(script, "-p", PLUGIN, "--rs-tck=mine:good", "-k", "spec109_subscr")
    assert result.parseoutcomes()["passed"] == 1


def test_laws_are_reported_in_junit_xml(pytester: pytest.Pytester) -> None:
    run(pytester, FAILS, "-k", "spec109_subscribes_first", "--junitxml=report.xml")
    written = (pytester.path / "report.xml").read_text("utf-8")
    assert f'name="{LAW}"' in written
    assert "subscribe() raised ValueError" in written


@pytest.mark.thorough
def test_laws_can_be_distributed_over_processes(pytester: pytest.Pytester) -> None:
    result = run(
        pytester, FAILS, "-p", "xdist", "-n", "1", "-k", "spec109_subscribes_first", "-W", "default"
    )
    result.assert_outcomes(failed=1)
    matching(result, ["*subscribe() raised ValueError('not today')", "demand   >*"])


# -- in a test module ------------------------------------------------------------------------------
FORMS: Final = """
    import pytest
    from reactive_aio.tck import Candidate
    from reactive_aio.tck.pytest_plugin import Laws, laws
    from tests.tck import hostile_candidates

    test_conformance = laws(hostile_candidates.good)

    class TestConformance(Laws):
        @pytest.fixture(autouse=True)
        def a_resource(self):
            self.resource = hostile_candidates.good()
            yield
            del self.resource

        def candidate(self):
            return Candidate(publisher=lambda n: self.resource.publisher(n), max_elements=3)
"""


def test_a_function_and_a_class_run_all_laws(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(FORMS)
    only = ("-v", "-k", "spec109_subscribes_first", "-m", "rs_tck", "--strict-markers")
    result = run(pytester, *only)
    assert result.parseoutcomes()["passed"] == 2
    matching(
        result,
        [
            "rs-tck: 2 laws",
            f"*::test_conformance?{LAW}? PASSED*",
            f"*::TestConformance::test_law?{LAW}? PASSED*",
        ],
    )


def test_the_example_of_the_documentation_is_accurate(pytester: pytest.Pytester) -> None:
    page = (ROOT / "docs" / "conformance.md").read_text("utf-8")
    [code] = re.findall(r"^```python\n(import pytest\n.*?)^```", page, re.MULTILINE | re.DOTALL)
    pytester.makepyfile(code)
    result = run(pytester, "-k", "spec109")
    assert result.ret == 0
    assert result.parseoutcomes()["passed"] > 3


def test_they_work_without_the_plugin(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(FORMS)
    result = python.run_pytest(
        pytester, "-p", "no:reactive_aio", *WARNINGS, "-k", "spec109_subscribes_first"
    )
    assert result.parseoutcomes()["passed"] == 2


def test_a_class_without_a_candidate_names_the_missing_method(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "from reactive_aio.tck.pytest_plugin import Laws\nclass TestMine(Laws): pass"
    )
    matching(run(pytester), ["*TestMine needs a method candidate(self)"])


@pytest.mark.thorough
def test_an_installed_package_registers_the_plugin(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = pytester.mkdir("site")
    info = installed / "reactive_aio-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: reactive-aio\nVersion: 0\n")
    (info / "entry_points.txt").write_text(f"[pytest11]\nreactive_aio = {MODULE}\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(installed), str(ROOT))))
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    options = ("-W", "error", "-W", "ignore::pytest.PytestDeprecationWarning")
    result = pytester.runpytest_subprocess(GOOD, *options, "-k", "spec109_subscribes_first")
    assert result.parseoutcomes()["passed"] == 1


# -- other tests -----------------------------------------------------------------------------------
def test_pytest_starts_without_importing_the_kit() -> None:
    code = f"import sys, {MODULE}; print(*(n for n in sys.modules if 'tck' in n or 'testing' in n))"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    ours = {name for name in ended.stdout.split() if name.startswith("reactive_aio")}
    assert ours == {"reactive_aio.tck", MODULE}


@pytest.mark.thorough
def test_other_tests_are_not_affected(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\n@pytest.mark.parametrize('n', [1])\ndef test_a(n): pass")
    result = run(pytester, "--strict-markers")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*rs-tck*")
