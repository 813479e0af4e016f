"""A candidate that blocks, loops forever, never answers or raises gets verdicts."""

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
from reactive_aio.tck import Candidate, Outcome
from reactive_aio.tck.run.watchdog import Watchdog
from tests.tck import hostile_candidates

pytestmark = pytest.mark.slow

QUICK: Final = tck.Timeouts(
    response=0.3, reduced_response=0.1, quiet_period=0.001, stall=0.6, law=1.2
)
LAW: Final = "spec109_subscribes_first"


@pytest.fixture(autouse=True, scope="module")
def blocking_is_allowed(blocking_calls_fail: BlockBuster) -> Iterator[None]:
    blocking_calls_fail.deactivate()
    yield
    blocking_calls_fail.activate()


@pytest.fixture(autouse=True)
def leaks_are_cleaned_up(expects_error_logs: list[logging.LogRecord]) -> Iterator[None]:
    """asyncio logs what a candidate has leaked, which is expected."""
    hostile_candidates.RELEASE.clear()
    yield
    hostile_candidates.RELEASE.set()
    for thread in threading.enumerate():
        if thread.name.startswith(("tck ", "leaked by")):
            thread.join(5)
    hostile_candidates.LEAKED.clear()
    gc.collect()


def judged(act: Callable[[Subscriber[Any]], object], rule: str = LAW) -> tck.Report:
    candidate = Candidate(
        publisher=lambda _: hostile_candidates.HostilePublisher(act), max_elements=99
    )
    return tck.check(candidate, rules=(rule,), timeouts=QUICK)


@pytest.mark.parametrize(
    ("act", "why", "place"),
    [
        (hostile_candidates.spin, "the loop had no turn for", "in spin"),
        (hostile_candidates.spin_and_swallow, "and cannot be stopped", "in spin"),
        (hostile_candidates.wait_in_c, "and cannot be stopped", "in wait_in_c"),
        (hostile_candidates.never_answer, "on_subscribe has not come", ""),
        (hostile_candidates.fail, "subscribe() raised ValueError('not today')", ""),
    ],
)
def test_the_verdict_says_what_a_candidate_did_and_where_it_was(
    act: Callable[[Subscriber[Any]], object], why: str, place: str
) -> None:
    report = judged(act)
    verdict = report[LAW]
    assert verdict.fails
    assert why in verdict.why
    assert place in verdict.stack
    assert not report.ok
    assert all(each.seconds < 10 for each in report)


def test_elements_without_end_are_stopped_and_break_the_rule_of_demand() -> None:
    verdict = judged(hostile_candidates.flood, "1.1")["spec101_sends_no_more_than_requested"]
    assert (verdict.outcome, verdict.broken) == (Outcome.FAIL, "1.1")


def test_a_violation_counts_even_if_the_candidate_then_hangs_in_cancel() -> None:
    verdict = judged(hostile_candidates.answer_wrongly_and_hang)[LAW]
    assert verdict.broken == "1.9"
    assert "before on_subscribe" in verdict.why


@pytest.mark.parametrize(
    ("factory", "why"),
    [
        (hostile_candidates.spin_in_factory, "the loop had no turn for 0.6 s inside publisher(0)"),
        (hostile_candidates.never_made, "there was no end after 1.2 s inside publisher(0)"),
    ],
)
def test_a_factory_that_hangs_is_named(factory: Callable[[int], Any], why: str) -> None:
    report = tck.check(Candidate(publisher=factory), rules=(LAW,), timeouts=QUICK)
    assert why in report[LAW].why


class SlowToWake(asyncio.SelectorEventLoop):
    """A loop whose thread is not scheduled for a while."""

    wake_ups = 0

    def _write_to_self(self) -> None:
        self.wake_ups += 1
        if self.wake_ups > 15:  # three quarters of a second, and more than QUICK.stuck
            super()._write_to_self()  # type: ignore[misc]


def test_a_loop_that_wakes_up_late_has_not_stalled() -> None:
    watchdog = Watchdog(asyncio.Event().wait, SlowToWake)  # type: ignore[arg-type]
    watchdog.run(QUICK, "tck slow to wake")
    assert watchdog.stop_reason == "there was no end after 1.2 s"
    assert not watchdog.is_abandoned


def test_what_one_law_leaks_does_not_affect_the_next() -> None:
    report = judged(hostile_candidates.leave_everything, "1.9")
    assert [verdict.law for verdict in report if verdict.fails] == []
    assert report.ok
    assert len(hostile_candidates.LEAKED) > 2, "several laws have run"


def test_a_law_after_one_that_hung_is_judged_independently() -> None:
    calls: list[str] = []

    def hang_once(subscriber: Subscriber[Any]) -> None:
        if not calls:
            calls.append("once")
            hostile_candidates.wait_in_c()
        rx.range(3).subscribe(subscriber)

    first, *others = judged(hang_once, "1.9")
    while not first.fails:
        first, *others = others
    assert "cannot be stopped" in first.why
    assert [verdict.law for verdict in others if verdict.fails] == []
    assert any(verdict.outcome is Outcome.PASS for verdict in others)


def test_after_a_candidate_hung_the_timeouts_are_reduced() -> None:
    timeouts = tck.Timeouts(response=1, reduced_response=0.1)
    report = tck.check(
        hostile_candidates.candidate_with(hostile_candidates.never_answer)(),
        rules=("1.9",),
        timeouts=timeouts,
    )
    first, *_, last = (verdict.seconds for verdict in report if verdict.fails)
    assert first >= timeouts.response > last >= timeouts.reduced_response


def test_large_output_does_no_harm(capfd: pytest.CaptureFixture[str]) -> None:
    assert judged(hostile_candidates.print_much).ok
    assert len(capfd.readouterr().out) > 1_000_000


def test_checks_in_several_threads_run_one_law_at_a_time_and_restore_the_interpreter() -> None:
    candidate, reports = Candidate(publisher=rx.range), list[tck.Report]()

    def check() -> None:
        reports.append(tck.check(candidate, rules=("1.3", "1.9", "L.6")))

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
from tests.tck import hostile_candidates

threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    candidate = hostile_candidates.candidate_with(hostile_candidates.spin)()
    tck.check(candidate, timeouts=tck.Timeouts(stall=30))
except KeyboardInterrupt:
    sys.exit(any(thread.name.startswith("tck ") for thread in threading.enumerate()))
sys.exit(2)
"""


def test_ctrl_c_ends_a_check_and_leaves_no_thread() -> None:
    root = Path(__file__).parents[2]
    process = subprocess.run([sys.executable, "-c", INTERRUPTED], cwd=root, timeout=60, check=False)
    assert process.returncode == 0
