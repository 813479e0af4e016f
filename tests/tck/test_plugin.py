"""The pytest plugin: one test for each law, and nothing for those who do not ask."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

import pytest

from reactive_aio.tck import cases
from tests.tck import unruly

pytestmark = pytest.mark.slow

ROOT: Final = Path(__file__).parents[2]
MODULE: Final = "reactive_aio.tck.pytest_plugin"
# Where the package is installed, the plugin has the name of its entry point, and no second one.
PLUGIN: Final = "reactive_aio" if entry_points(group="pytest11", name="reactive_aio") else MODULE
LAW: Final = "publisher-spec109_subscribes_first-MUST"
GOOD: Final = "--rs-tck=tests.tck.unruly:good"
FAILS: Final = "--rs-tck=tests.tck.unruly:fails"


@pytest.fixture(autouse=True)
def importable(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    # Other plugins take a second to import in each process.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """pytest in a process of its own, with the plugin and warnings as errors."""
    return pytester.runpytest_subprocess("-p", PLUGIN, "-W", "error", *arguments)


def matching(result: pytest.RunResult, lines: Iterable[str]) -> None:
    result.stdout.fnmatch_lines(list(lines))


# -- on the command line ---------------------------------------------------------------------------
def test_a_factory_has_one_test_for_each_law_and_the_number_is_told(
    pytester: pytest.Pytester,
) -> None:
    result = run(pytester, GOOD, "-v")
    count = len(cases(unruly.good()))
    assert result.ret == 0
    matching(
        result,
        [
            "rs-tck: tests.tck.unruly:good",
            f"*collected {count} items",
            f"rs-tck: {count} laws",
            f"rs-tck::tests.tck.unruly:good::{LAW} PASSED*",
        ],
    )


def test_nothing_else_is_run_unless_it_is_asked_for(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_mine(): pass")
    only = ("-k", "spec109_subscribes_first or test_mine")
    run(pytester, GOOD, *only).assert_outcomes(passed=1, deselected=len(cases(unruly.good())) - 1)
    run(pytester, GOOD, ".", *only).assert_outcomes(
        passed=2, deselected=len(cases(unruly.good())) - 1
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
            f"FAILED rs-tck::tests.tck.unruly:fails::{LAW}*",
        ],
    )
    result.stdout.no_fnmatch_line("*pytest_plugin.py*")


def test_a_broken_should_is_an_expected_failure_except_for_the_strict(
    pytester: pytest.Pytester,
) -> None:
    slow = ("--rs-tck=tests.tck.unruly:slow", "-k", "spec304_request_returns_quickly", "-rx")
    pytester.makeconftest(
        "from reactive_aio.tck.terms import Terms\n"
        "Terms.__init__.__defaults__ = tuple(\n"
        "    0.1 if each == 0.5 else each for each in Terms.__init__.__defaults__\n"
        ")\n"
    )
    result = run(pytester, *slow)
    result.assert_outcomes(xfailed=1, deselected=len(cases(unruly.slow())) - 1)
    matching(result, ["XFAIL rs-tck::*-SHOULD - SHOULD: rule 3.4: *"])
    run(pytester, *slow, "--rs-tck-strict").assert_outcomes(
        failed=1, deselected=len(cases(unruly.slow())) - 1
    )


def test_what_cannot_be_judged_is_skipped_with_the_reason(pytester: pytest.Pytester) -> None:
    result = run(pytester, GOOD, "-k", "spec104", "-rs")
    matching(result, ["SKIPPED *the subject has no failing_publisher"])


def test_laws_are_selected_by_marker(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_mine(): pass")
    result = run(pytester, GOOD, ".", "-m", "rs_tck(rule='1.9')", "--strict-markers")
    passed = sum(case.law.rule == "1.9" for case in cases(unruly.good()))
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
        ("tests.tck.unruly:missing", "--rs-tck *: tests.tck.unruly has no 'missing'"),
        ("tests.tck.unruly:raises", "E   ZeroDivisionError: no subject"),
    ],
)
def test_a_bad_factory_is_an_error_of_collection(
    where: str, line: str, pytester: pytest.Pytester
) -> None:
    result = run(pytester, f"--rs-tck={where}")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    matching(result, [line])


def test_the_current_folder_is_searched(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(mine="from tests.tck.unruly import good")
    # The script, whose folder is the one on sys.path; `python -m` would add the current one.
    script = Path(sys.executable).with_name("pytest")
    result = pytester.run(script, "-p", PLUGIN, "--rs-tck=mine:good", "-k", "spec109_subscr")
    assert result.parseoutcomes()["passed"] == 1


def test_laws_are_told_in_junit_xml(pytester: pytest.Pytester) -> None:
    run(pytester, FAILS, "-k", "spec109_subscribes_first", "--junitxml=report.xml")
    written = (pytester.path / "report.xml").read_text("utf-8")
    assert f'name="{LAW}"' in written
    assert "subscribe() raised ValueError" in written


def test_laws_can_be_spread_over_processes(pytester: pytest.Pytester) -> None:
    result = run(
        pytester, FAILS, "-p", "xdist", "-n", "1", "-k", "spec109_subscribes_first", "-W", "default"
    )
    result.assert_outcomes(failed=1)
    matching(result, ["*subscribe() raised ValueError('not today')", "demand   >*"])


# -- in a test module ------------------------------------------------------------------------------
FORMS: Final = """
    import pytest
    from reactive_aio.tck.pytest_plugin import Laws, laws
    from tests.tck import unruly

    test_conformance = laws(unruly.good)

    class TestConformance(Laws):
        @pytest.fixture(autouse=True)
        def a_resource(self):
            self.resource = unruly.good()
            yield
            del self.resource

        def subject(self):
            return unruly.Subject(publisher=lambda n: self.resource.publisher(n), max_elements=3)
"""


def test_a_function_and_a_class_stand_for_all_laws(pytester: pytest.Pytester) -> None:
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


def test_the_example_of_the_documents_is_true(pytester: pytest.Pytester) -> None:
    page = (ROOT / "docs" / "conformance.md").read_text("utf-8")
    [code] = re.findall(r"^```python\n(import pytest\n.*?)^```", page, re.MULTILINE | re.DOTALL)
    pytester.makepyfile(code)
    result = run(pytester, "-k", "spec109")
    assert result.ret == 0
    assert result.parseoutcomes()["passed"] > 3


def test_they_work_without_the_plugin_too(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(FORMS)
    result = pytester.runpytest_subprocess(
        "-p", "no:reactive_aio", "-W", "error", "-k", "spec109_subscribes_first"
    )
    assert result.parseoutcomes()["passed"] == 2


def test_a_class_without_a_subject_says_what_is_missing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "from reactive_aio.tck.pytest_plugin import Laws\nclass TestMine(Laws): pass"
    )
    matching(run(pytester), ["*TestMine needs a method subject(self)"])


def test_where_the_package_is_installed_pytest_finds_the_plugin_by_itself(
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


# -- for those who do not ask ----------------------------------------------------------------------
def test_the_start_of_pytest_does_not_import_the_kit() -> None:
    code = f"import sys, {MODULE}; print(*(n for n in sys.modules if 'tck' in n or 'testing' in n))"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    ours = {name for name in ended.stdout.split() if name.startswith("reactive_aio")}
    assert ours == {"reactive_aio.tck", MODULE}


def test_other_tests_are_left_alone(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\n@pytest.mark.parametrize('n', [1])\ndef test_a(n): pass")
    result = run(pytester, "--strict-markers")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*rs-tck*")
