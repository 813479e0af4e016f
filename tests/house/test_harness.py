"""The harness detects each kind of fault: a test with the fault fails."""

import asyncio
import logging
import os
import subprocess
import sys
from itertools import combinations, product
from pathlib import Path
from xml.etree import ElementTree

import pytest

from reactive_aio.testing.virtual_time import VirtualTimeLoop
from tests.harness.leftover_checks import Context
from tests.harness.loops import HAS_UVLOOP, REAL_LOOPS, DebugLoop
from tests.harness.one_run import in_one_run
from tests.harness.pairs import covering

ROOT = Path(__file__).parents[2]
FAULTS = "tests/house/faults.py"

COMPLAINTS = {
    "lost_callback_error": "the loop's exception handler was called",
    "lost_task_error": "Task exception was never retrieved",
    "error_log": "logged as ERROR by some.where: something broke",
    "error_log_without_a_loop": "logged as ERROR by some.where: something broke",
    "forgotten_coroutine": "coroutine 'endless' was never awaited",
    "left_task": "tasks are left: [<Task",
    "left_thread": "a thread is left: <Thread(the left one",
    "blocking_sleep": "Blocking call to time.sleep",
    "blocking_lock": "Blocking call to lock.acquire",
    "blocking_file": "Blocking call to io.BufferedReader.read",
    "deadlock": "deadlock at 0 s of virtual time",
    "failing_and_leaving": "the only complaint",
}
ONCE = {"error_log_without_a_loop", "deadlock"}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> list[ElementTree.Element]:
    """Each run of a test of `faults`, as pytest reports it."""
    file = tmp_path_factory.mktemp("faults") / "report.xml"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--junitxml={file}"]
    subprocess.run(
        [*command, FAULTS], cwd=ROOT, env=os.environ, check=False, stdout=subprocess.DEVNULL
    )
    return list(ElementTree.parse(file).iter("testcase"))


def runs_of(report: list[ElementTree.Element], name: str) -> list[ElementTree.Element]:
    return [case for case in report if case.attrib["name"].partition("[")[0] == f"test_{name}"]


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPLAINTS)
def test_a_fault_fails_its_test(report: list[ElementTree.Element], name: str) -> None:
    runs = runs_of(report, name)
    assert len(runs) == (1 if name in ONCE else len(REAL_LOOPS))
    for case in runs:
        (complaint,) = case
        assert complaint.tag in {"failure", "error"}
        assert COMPLAINTS[name] in "".join(complaint.itertext()) + complaint.attrib["message"]


@pytest.mark.slow
def test_every_fault_has_an_expected_complaint(report: list[ElementTree.Element]) -> None:
    faulty = {
        case.attrib["name"].partition("[")[0].removeprefix("test_")
        for case in report
        if case.attrib["classname"].endswith("TestFaulty")
    }
    assert faulty == set(COMPLAINTS)


@pytest.mark.slow
def test_harmless_tests_pass(report: list[ElementTree.Element]) -> None:
    harmless = [case for case in report if case.attrib["classname"].endswith("TestHarmless")]
    assert harmless
    assert [case.attrib["name"] for case in harmless if len(case)] == []


async def test_an_asynchronous_test_runs_on_each_loop() -> None:
    loop = asyncio.get_running_loop()
    if type(loop) is DebugLoop:
        assert loop.checks_calls()
    else:
        assert HAS_UVLOOP
        assert type(loop).__module__.startswith("uvloop")


@pytest.mark.virtual_time
async def test_a_test_may_run_in_virtual_time() -> None:
    assert type(asyncio.get_running_loop()) is VirtualTimeLoop


async def test_a_test_may_expect_loop_errors(
    expects_loop_errors: list[Context],
) -> None:
    def boom() -> None:
        raise ValueError("expected")

    asyncio.get_running_loop().call_soon(boom)
    await asyncio.sleep(0)
    (context,) = expects_loop_errors
    assert isinstance(context["exception"], ValueError)


def test_a_test_may_expect_error_logs(expects_error_logs: list[logging.LogRecord]) -> None:
    logging.getLogger("some.where").error("something %s", "broke")
    (record,) = expects_error_logs
    assert record.getMessage() == "something broke"


def test_each_two_rows_meet() -> None:
    columns: list[list[object]] = [[*range(5)], [*"abc"], [True, False]]
    found = covering(columns)
    for one, other in combinations(range(len(columns)), 2):
        met = {(row[one], row[other]) for row in found}
        assert met == {*product(columns[one], columns[other])}
    assert len(found) == 5 * 3


# -- many cases in one test ------------------------------------------------------------------------
def test_a_failure_says_in_which_combination_it_happened() -> None:
    seen: list[tuple[int, str, int]] = []

    @in_one_run
    @pytest.mark.parametrize("x", [1, 2])
    @pytest.mark.parametrize(("name", "y"), [("a", 3), ("b", 4)])
    def check(x: int, name: str, y: int) -> None:
        seen.append((x, name, y))
        assert (x, y) != (1, 4)

    with pytest.raises(AssertionError) as failed:
        check()
    assert seen == [(1, "a", 3), (2, "a", 3), (1, "b", 4)]
    assert failed.value.__notes__ == ["in the combination {'name': 'b', 'y': 4, 'x': 1}"]


@pytest.mark.asyncio(loop_factories=["asyncio"])
async def test_each_combination_begins_without_errors_and_leaves_no_task() -> None:
    tasks: list[asyncio.Task[None]] = []

    async def wait() -> None:
        await asyncio.Event().wait()

    @in_one_run
    @pytest.mark.parametrize("leaves", [0, 1])
    async def check(leaves: int, errors: list[int]) -> None:
        assert errors == []
        errors.append(1)
        if leaves:
            tasks.append(asyncio.create_task(wait()))

    with pytest.raises(AssertionError, match="tasks are left: ") as failed:
        await check(errors=[1])
    assert failed.value.__notes__ == ["in the combination {'leaves': 1}"]
    tasks[0].cancel()
