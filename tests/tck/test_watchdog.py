"""A subject that blocks, runs away, never answers or raises gets verdicts, not a hang."""

import asyncio
import gc
import logging
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from blockbuster import BlockBuster

import reactive_aio as rx
from reactive_aio import tck
from reactive_aio.spec import Subscriber
from reactive_aio.tck import Outcome, Subject
from reactive_aio.tck.run.watchdog import Watchdog
from tests.tck import unruly

pytestmark = pytest.mark.slow

QUICK: Final = tck.Terms(come=0.3, come_again=0.1, quiet=0.001, stuck=0.6, longest=1.2)
LAW: Final = "spec109_subscribes_first"


@pytest.fixture(autouse=True, scope="module")
def blocking_is_the_point(blocking_calls_fail: BlockBuster) -> Iterator[None]:
    blocking_calls_fail.deactivate()
    yield
    blocking_calls_fail.activate()


@pytest.fixture(autouse=True)
def nothing_goes_on(expects_error_logs: list[logging.LogRecord]) -> Iterator[None]:
    """What a subject has left is told by asyncio's log; that is as it should be."""
    unruly.RELEASE.clear()
    yield
    unruly.RELEASE.set()
    for thread in threading.enumerate():
        if thread.name.startswith(("tck ", "left by")):
            thread.join(5)
    unruly.LEFT.clear()
    gc.collect()


def judged(act: Callable[[Subscriber[Any]], object], rule: str = LAW) -> tck.Report:
    subject = Subject(publisher=lambda _: unruly.Unruly(act), max_elements=99)
    return tck.check(subject, rules=(rule,), terms=QUICK)


@pytest.mark.parametrize(
    ("act", "why", "place"),
    [
        (unruly.spin, "the loop had no turn for", "in spin"),
        (unruly.spin_and_swallow, "and cannot be stopped", "in spin"),
        (unruly.wait_in_c, "and cannot be stopped", "in wait_in_c"),
        (unruly.never_answer, "on_subscribe has not come", ""),
        (unruly.fail, "subscribe() raised ValueError('not today')", ""),
    ],
)
def test_it_is_told_what_a_subject_did_and_where_it_was(
    act: Callable[[Subscriber[Any]], object], why: str, place: str
) -> None:
    report = judged(act)
    verdict = report[LAW]
    assert verdict.fails
    assert why in verdict.why
    assert place in verdict.stack
    assert not report.ok
    assert all(each.seconds < 10 for each in report)


def test_elements_without_end_are_stopped_and_held_against_the_demand() -> None:
    verdict = judged(unruly.flood, "1.1")["spec101_sends_no_more_than_requested"]
    assert (verdict.outcome, verdict.broken) == (Outcome.FAIL, "1.1")


def test_what_was_found_counts_though_the_subject_then_hangs_in_cancel() -> None:
    verdict = judged(unruly.answer_wrongly_and_hang)[LAW]
    assert verdict.broken == "1.9"
    assert "before on_subscribe" in verdict.why


@pytest.mark.parametrize(
    ("factory", "why"),
    [
        (unruly.spin_in_factory, "the loop had no turn for 0.6 s inside publisher(0)"),
        (unruly.never_made, "there was no end after 1.2 s inside publisher(0)"),
    ],
)
def test_a_factory_that_hangs_is_named(factory: Callable[[int], Any], why: str) -> None:
    report = tck.check(Subject(publisher=factory), rules=(LAW,), terms=QUICK)
    assert why in report[LAW].why


class SlowToWake(asyncio.SelectorEventLoop):
    """A loop on a processor that a busy machine has taken away."""

    wakings = 0

    def _write_to_self(self) -> None:
        self.wakings += 1
        if self.wakings > 15:  # three quarters of a second, and more than QUICK.stuck
            super()._write_to_self()  # type: ignore[misc]


def test_a_loop_that_is_woken_late_has_not_been_held_up() -> None:
    watchdog = Watchdog(asyncio.Event().wait, SlowToWake)  # type: ignore[arg-type]
    watchdog.run(QUICK, "tck slow to wake")
    assert watchdog.braked == "there was no end after 1.2 s"
    assert not watchdog.left_behind


def test_what_one_law_leaves_does_not_reach_the_next() -> None:
    report = judged(unruly.leave_everything, "1.9")
    assert [verdict.law for verdict in report if verdict.fails] == []
    assert report.ok
    assert len(unruly.LEFT) > 2, "several laws have run"


def test_a_law_after_one_that_hung_is_judged_on_a_clean_slate() -> None:
    hung: list[str] = []

    def hang_once(subscriber: Subscriber[Any]) -> None:
        if not hung:
            hung.append("once")
            unruly.wait_in_c()
        rx.range(3).subscribe(subscriber)

    first, *others = judged(hang_once, "1.9")
    while not first.fails:
        first, *others = others
    assert "cannot be stopped" in first.why
    assert [verdict.law for verdict in others if verdict.fails] == []
    assert any(verdict.outcome is Outcome.PASS for verdict in others)


def test_a_subject_that_hung_is_waited_for_less() -> None:
    terms = tck.Terms(come=1, come_again=0.1)
    report = tck.check(unruly.doing(unruly.never_answer)(), rules=("1.9",), terms=terms)
    first, *_, last = (verdict.seconds for verdict in report if verdict.fails)
    assert first >= terms.come > last >= terms.come_again


def test_much_that_is_printed_is_no_harm(capfd: pytest.CaptureFixture[str]) -> None:
    assert judged(unruly.print_much).ok
    assert len(capfd.readouterr().out) > 1_000_000


def test_checks_in_several_threads_take_turns_and_leave_the_interpreter_as_it_was() -> None:
    subject, reports = Subject(publisher=rx.range), list[tck.Report]()

    def check() -> None:
        reports.append(tck.check(subject, rules=("1.3", "1.9", "L.6")))

    before = sys.getswitchinterval(), sys.unraisablehook, [*warnings.filters]
    threads = [threading.Thread(target=check) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (sys.getswitchinterval(), sys.unraisablehook, [*warnings.filters]) == before
    assert [report.having(Outcome.FAIL) for report in reports] == [[], [], []]


INTERRUPTED: Final = """
import os, signal, sys, threading
from reactive_aio import tck
from tests.tck import unruly

threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    tck.check(unruly.doing(unruly.spin)(), terms=tck.Terms(stuck=30))
except KeyboardInterrupt:
    sys.exit(any(thread.name.startswith("tck ") for thread in threading.enumerate()))
sys.exit(2)
"""


def test_ctrl_c_ends_a_check_and_leaves_no_thread() -> None:
    root = Path(__file__).parents[2]
    process = subprocess.run([sys.executable, "-c", INTERRUPTED], cwd=root, timeout=60, check=False)
    assert process.returncode == 0
