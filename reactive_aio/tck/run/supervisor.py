"""The supervisor: has workers judge a candidate, and replaces a worker that the candidate ended.

The watchdog inside a worker stops nearly everything. What it cannot stop, such as a call in C that
holds the interpreter, a crash, ``os._exit`` or unbounded memory, ends the worker's process; the
supervisor then gives the verdict on the current law, and the next law begins in a new process.
"""

import json
import os
import queue
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Final

from ..laws import LAWS
from ..report.verdict import Report, Verdict
from ..rules import Strength
from ..timeouts import Timeouts
from .watchdog import FRAMES, KIT
from .worker import Job

INTERVAL: Final = 0.1
START_TIMEOUT: Final = 60.0
"""Seconds until the interpreter of a worker has started and imported the kit."""
GRACE: Final = 10.0
"""Seconds beyond those of the watchdog, which gives the better verdict."""
MAX_EARLY_DEATHS: Final = 3
"""Workers that may die between two laws before the next law is given up."""
MAX_OUTPUT: Final = 4_000
"""Characters of output that are kept for each law."""


class UsageError(Exception):
    """The command cannot be executed as given; the message says what to change."""


def _start_reader(read: Callable[[IO[bytes]], None], stream: IO[bytes]) -> threading.Thread:
    """Read *stream* to its end in a thread, and close it."""

    def read_and_close() -> None:
        with stream:
            read(stream)

    thread = threading.Thread(target=read_and_close, name="tck reader", daemon=True)
    thread.start()
    return thread


def _interpreter_options() -> list[str]:
    """The options of this interpreter that a candidate may observe: -O, -b, -I, -X and -W."""
    flags = (("O", sys.flags.optimize), ("b", sys.flags.bytes_warning), ("I", sys.flags.isolated))
    options = [f"-{letter * count}" for letter, count in flags if count]
    for name, value in sys._xoptions.items():
        options += ["-X", name if value is True else f"{name}={value}"]
    for warning in sys.warnoptions:
        options += ["-W", warning]
    return options


class _Worker:
    """One worker process and its messages."""

    def __init__(self, job: Job, show_output: bool) -> None:
        self._job = job
        self._process = subprocess.Popen(
            [sys.executable, *_interpreter_options(), "-m", f"{__package__}.worker", job.to_json()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if show_output else subprocess.PIPE,
        )
        self._messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._outputs: queue.Queue[bytes] = queue.Queue()
        streams = (
            (self._read_messages, self._process.stdout),
            (self._read_outputs, self._process.stderr),
        )
        self._readers = [_start_reader(read, stream) for read, stream in streams if stream]

    def _read_messages(self, stream: IO[bytes]) -> None:
        with suppress(ValueError):  # the end may truncate a line
            for line in stream:
                self._messages.put(json.loads(line))
        self._messages.put(None)

    def _read_outputs(self, stream: IO[bytes]) -> None:
        tail = b""
        while chunk := os.read(stream.fileno(), 65536):
            *parts, tail = (tail + chunk).split(self._job.separator.encode())
            for part in parts:
                self._outputs.put(part[-MAX_OUTPUT:])
            tail = tail[-MAX_OUTPUT:]
        self._outputs.put(tail)

    def output(self) -> str:
        """The end of what the candidate has printed since the last law."""
        with suppress(queue.Empty):
            if self._process.stderr is not None:
                return self._outputs.get(timeout=1).decode("utf-8", "replace").strip("\n")
        return ""

    def receive(self, patience: float, silence: float) -> dict[str, Any] | str:
        """The next message, or how the process ended.

        Adds up short intervals instead of reading the clock: a suspended machine does not count.
        """
        waited = silent = 0.0
        while waited < patience and silent < silence:
            before = time.monotonic()
            with suppress(queue.Empty):
                message = self._messages.get(timeout=INTERVAL)
                if message is None:
                    return self._exit_description()
                if "alive" not in message:
                    return message
                silent = 0.0
            elapsed = min(time.monotonic() - before, 2 * INTERVAL)
            waited, silent = waited + elapsed, silent + elapsed
            if self._process.poll() is not None and self._messages.empty():
                patience = min(patience, waited + 1)  # a child process may keep the pipe open
        if self._process.poll() is not None:
            return self._exit_description()
        self._request_stack()
        self.kill()
        if silent >= silence:
            return f"the interpreter did not run for {silence:g} s, and its process was killed"
        return f"there was no end after {patience:g} s, and its process was killed"

    def _exit_description(self) -> str:
        status = self._process.wait()
        if status >= 0:
            return f"its process exited with status {status}"
        with suppress(ValueError):
            return f"its process died of the signal {signal.Signals(-status).name}"
        return f"its process died of the signal {-status}"

    def _request_stack(self) -> None:
        """Have the stacks written; wait until the file no longer grows, which may take a while."""
        if sys.platform == "win32":
            return
        self._process.send_signal(signal.SIGUSR1)
        before, size, deadline = -1, 0, time.monotonic() + GRACE
        while (not size or size != before) and time.monotonic() < deadline:
            time.sleep(3 * INTERVAL)
            before, size = size, Path(self._job.stacks).stat().st_size

    def stack(self) -> str:
        """The candidate's calls when its process ended, if they were written."""
        return _candidate_stack(Path(self._job.stacks).read_text("utf-8", "replace"))

    def kill(self) -> None:
        """Kill the process and wait for its output."""
        self._process.kill()
        self._process.wait()
        for reader in self._readers:
            reader.join(1)  # a child process of the candidate may keep the pipe open


def _after_watchdog(seconds: float) -> float:
    """Leave the watchdog inside the worker the time to give the better verdict."""
    return seconds + min(GRACE, 2 * seconds)


def _candidate_stack(stacks: str) -> str:
    """Of all threads' stacks the candidate's, down to the kit."""
    parts = stacks.split("\n\n")
    kit = ("watchdog.py", "candidate.py")
    chosen = next((each for at in kit for each in parts if at in each), stacks)
    cause = parts[0] if parts[0].startswith("Fatal") and chosen != parts[0] else ""
    lines = [line for line in [cause, *chosen.splitlines()] if line]
    ours = [at for at, line in enumerate(lines) if KIT in line]
    return "\n".join(lines[: min(ours[0] if ours else FRAMES, FRAMES)])


@dataclass
class Supervisor:
    """Has a candidate judged in worker processes, law by law."""

    job: Job
    on_start: Callable[[int, int, str], object] | None = None
    """Called with the number of a law, the count of all laws, and the law's name."""
    show_output: bool = False
    """Whether the candidate's output is shown as it is printed."""
    report: Report = field(default_factory=lambda: Report(""))
    """The verdicts so far."""

    def __post_init__(self) -> None:
        self._timeouts = self.job.timeouts
        self._plan: list[list[str]] | None = None
        self._current: int | None = None

    def run(self) -> Report:
        """Judge; every law that was selected gets a verdict."""
        with tempfile.TemporaryDirectory(prefix="tck-") as folder:
            stacks, separator = str(Path(folder, "stacks")), f"\x1e{secrets.token_hex(8)}\x1e"
            Path(stacks).touch()
            shared = replace(self.job, stacks=stacks, separator=separator)
            early_deaths = 0
            while self._plan is None or self._done < len(self._plan):
                self._current = None
                begin = self._done
                job = replace(shared, begin=begin, timeouts=self._timeouts)
                self._run_worker(job, early_deaths)
                early_deaths = early_deaths + 1 if self._done == begin else 0
        return self.report

    @property
    def _done(self) -> int:
        return len(self.report.verdicts)

    def _run_worker(self, job: Job, early_deaths: int) -> None:
        """Have one worker judge as many laws as it can."""
        worker = _Worker(job, self.show_output)
        patience = silence = START_TIMEOUT
        try:
            while True:
                received = worker.receive(patience, silence)
                if isinstance(received, str):
                    self._handle_death(worker, received, job.begin, early_deaths)
                    return
                self._handle(received, worker)
                if "done" in received or received.get("needs_restart"):
                    return
                patience = _after_watchdog(self._timeouts.law)
                silence = _after_watchdog(self._timeouts.stall)
        finally:
            worker.kill()

    def _handle(self, message: dict[str, Any], worker: _Worker) -> None:
        if "invalid" in message:
            raise UsageError(message["invalid"])
        if "cases" in message:
            self._plan = message["cases"] * self.job.repeat
            self.report.candidate = message["candidate"]
            if not self._plan:
                raise UsageError("no law of the selected rules applies to the candidate")
        elif "begins" in message:
            number: int = message["begins"]
            self._current = number
            if self.on_start is not None and self._plan is not None:
                self.on_start(number + 1, len(self._plan), self._plan[number][1])
        elif "verdict" in message:
            self._current = None
            self._timeouts = Timeouts(**message["timeouts"])
            data = {**message["verdict"], "output": worker.output()}
            self.report.verdicts.append(Verdict.from_json(data))

    def _handle_death(self, worker: _Worker, why: str, begin: int, early_deaths: int) -> None:
        """Give the current law a verdict that says how the worker died."""
        worker.kill()
        if self._plan is None:
            parts = [f"{self.job.where} gave no candidate: {why}", worker.stack(), worker.output()]
            raise UsageError("\n".join(filter(None, parts)))
        if self._current is not None:
            self._add_failure(self._plan[self._current], why, worker)
        elif self._done == begin and early_deaths + 1 >= MAX_EARLY_DEATHS:
            self._add_failure(self._plan[begin], f"before it began, {why}", worker)
        if "was killed" in why:
            self._timeouts = self._timeouts.after_stall()

    def _add_failure(self, case: list[str], why: str, worker: _Worker) -> None:
        role, name = case
        verdict = Verdict.failed(LAWS[name], role, LAWS[name].rule, why)
        verdict = replace(verdict, stack=worker.stack(), output=worker.output())
        # Whatever the law's strength: no candidate may end the process.
        self.report.verdicts.append(replace(verdict, strength=Strength.MUST))
