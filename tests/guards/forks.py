"""Try changes in forks of one process: ``python -m tests.guards.forks JOBS VERDICTS TEST-FILES``.

Importing the tests takes a hundred times as long as the test that notices a change. Here that is
done once. Each change has a fork of its own, in which the code of its functions is replaced.
*JOBS* is a file with a list in JSON of changes and their tests. A line of JSON for each of them is
written to *VERDICTS*.

What has run before the first test has left its results, and a change of it would have no effect.
"""

import gc
import json
import os
import resource
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from functools import _lru_cache_wrapper
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple, TextIO

import pytest

from tests.guards.changes import ROOT, Change, changed
from tests.guards.mutant import BYTES

SECONDS: Final = 120
"""For all tests of a change; `QUIET` of them for each."""
QUIET: Final = 20
AT_ONCE: Final = 2 * (os.cpu_count() or 1)
"""Twice as many as cores: a test that waits for what never comes needs none."""
NEVER_ENDS: Final = "(the whole run: it never ends)"
STOPPED: Final = "(the whole run: it was stopped)"


class Job(NamedTuple):
    """A change, and the tests to try it with, in their order."""

    change: Change
    tests: list[str]
    failed: str = ""
    """The test that failed with it, and is now run without it."""


class Fork(NamedTuple):
    """A process that tries one change."""

    job: Job
    output: int
    """The descriptor to read the name of the failed test from."""
    ends_before: float


class Forks:
    """A plugin for pytest: in place of running all tests, it runs those of each job in a fork."""

    def __init__(self, jobs: Sequence[Job], verdicts: TextIO) -> None:
        self._jobs = deque(jobs)
        self._verdicts = verdicts
        self._failed = ""
        self._sound: set[str] = set()
        """Tests that have passed without a change, in a fork of their own."""
        self._functions: list[FunctionType] = []
        self._caches: list[_lru_cache_wrapper[Any]] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        alive = gc.get_objects()
        self._functions = [each for each in alive if isinstance(each, FunctionType)]
        self._caches = [each for each in alive if isinstance(each, _lru_cache_wrapper)]
        del alive
        gc.collect()
        gc.freeze()
        running: dict[int, Fork] = {}
        while self._jobs or running:
            while self._jobs and len(running) < AT_ONCE:
                job = self._jobs.popleft()
                process, fork = self._start(job, items)
                running[process] = fork
            for process in ended(running):
                fork = running.pop(process)
                self._judge(fork.job, verdict_of(fork), items)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed = report.nodeid

    def _start(self, job: Job, items: dict[str, pytest.Item]) -> tuple[int, Fork]:
        output, answer = os.pipe()
        process = os.fork()
        if not process:
            self._run(job, items, answer)
        os.close(answer)
        return process, Fork(job, output, time.monotonic() + SECONDS)

    def _run(self, job: Job, items: dict[str, pytest.Item], answer: int) -> None:
        """Run the tests of *job* up to the first that fails, and end this process."""
        try:
            os.setsid()
            nothing = os.open(os.devnull, os.O_RDWR)
            for standard in range(3):
                os.dup2(nothing, standard)
            resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
            if not job.failed:
                replace_code(job.change, self._functions)
                for cache in self._caches:
                    cache.cache_clear()
            names = [job.failed] if job.failed else job.tests
            chosen = [items[name] for name in names if name in items]
            for item, following in zip(chosen, [*chosen[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self._failed:
                    break
            os.write(answer, f"{self._failed}\n".encode())
        finally:
            os._exit(0)

    def _judge(self, job: Job, failed: str, items: dict[str, pytest.Item]) -> None:
        """Tell what happened with *job*, unless a test failed that may fail without the change."""
        if job.failed and failed:
            tests = [test for test in job.tests if test != job.failed]
            self._jobs.append(Job(job.change, tests))
        elif failed in items and failed not in self._sound:
            self._jobs.appendleft(job._replace(failed=failed))
        else:
            failed = failed or job.failed
            self._sound.add(failed)
            self._verdicts.write(json.dumps([job.change, failed]) + "\n")
            self._verdicts.flush()


def ended(running: dict[int, Fork]) -> Iterator[int]:
    """Wait a moment for forks to end, and end those that take too long, with their processes."""
    time.sleep(0.005)
    for process, fork in list(running.items()):
        if fork.ends_before < time.monotonic():
            os.killpg(process, signal.SIGKILL)
        if os.waitpid(process, os.WNOHANG)[0]:
            yield process


def verdict_of(fork: Fork) -> str:
    """The test that failed in *fork*, empty for none; or how it ended."""
    with open(fork.output, closefd=True) as output:
        os.set_blocking(fork.output, False)
        answer = output.read()
    if answer:
        return answer.strip()
    return STOPPED if time.monotonic() < fork.ends_before else NEVER_ENDS


def replace_code(change: Change, functions: Sequence[FunctionType]) -> None:
    """Let all functions of the module of *change* have the code that it makes of them."""
    file = str(ROOT / change.file)
    new = {place(code): code for code in all_code(compile(changed(change), file, "exec"))}
    for function in functions:
        old = function.__code__
        if old.co_filename == file and (code := new.get(place(old))):
            function.__code__ = code


def place(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def all_code(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from all_code(constant)


def main(jobs: str, verdicts: str, *arguments: str) -> int:
    rows: list[list[Any]] = json.loads(Path(jobs).read_text("utf-8"))
    with open(verdicts, "w", encoding="utf-8") as output:
        forks = Forks([Job(Change(*fields), tests) for fields, tests in rows], output)
        options = [f"--timeout={QUIET}", "--capture=no", "-q", "--no-header", "--no-summary"]
        absent = ["cacheprovider", "xdist"]
        without = [option for name in absent for option in ("-p", f"no:{name}")]
        return int(pytest.main([*arguments, *options, *without], plugins=[forks]))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
