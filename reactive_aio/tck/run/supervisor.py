"""The supervisor: has a subject judged by workers, and replaces one that its subject has ended.

The watchdog inside a worker stops nearly everything. What it cannot stop, a call in C that keeps
the interpreter for itself, a crash, ``os._exit``, memory without end, ends with its process; the
law under way gets its verdict here, and the next one begins in a new process.
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
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Final

from ..report.verdict import Outcome, Report, Verdict
from ..rules import Strength
from ..terms import Terms
from .watchdog import HERE
from .worker import Job

__all__ = ("BadCall", "Supervisor")

LOOK: Final = 0.1
GRACE: Final = 10.0
"""Seconds beyond those of the watchdog: this watch is the last resort."""
IMPATIENT: Final = 1.0
STOPS: Final = 3
"""Workers that may end between two laws, before the next law is given up."""
KEPT: Final = 4_000
"""Characters of output that are kept of one law."""
FRAMES: Final = 12


class BadCall(Exception):
    """What was asked for cannot be done; the message says what to do about it."""


def _start(read: Callable[[], None], stream: IO[bytes]) -> threading.Thread:
    """Read *stream* to its end in a thread, and close it."""

    def to_the_end() -> None:
        with stream:
            read()

    thread = threading.Thread(target=to_the_end, name="tck reader", daemon=True)
    thread.start()
    return thread


def _options() -> list[str]:
    """The options of this interpreter that a subject may notice: -O, -b, -X and -W."""
    options = [f"-{letter * count}" for letter, count in _counted() if count]
    for name, value in sys._xoptions.items():
        options += ["-X", name if value is True else f"{name}={value}"]
    for warning in sys.warnoptions:
        options += ["-W", warning]
    return options


def _counted() -> tuple[tuple[str, int], ...]:
    return (("O", sys.flags.optimize), ("b", sys.flags.bytes_warning), ("I", sys.flags.isolated))


class _Output:
    """What the subject prints: its last part, law by law."""

    def __init__(self, stream: IO[bytes], mark: bytes) -> None:
        self._stream, self._mark = stream, mark
        self._tail = b""
        self._parts: queue.Queue[bytes] = queue.Queue()
        self.reader: threading.Thread = _start(self._read, stream)

    def _read(self) -> None:
        while chunk := os.read(self._stream.fileno(), 65536):
            *parts, tail = (self._tail + chunk).split(self._mark)
            for part in parts:
                self._parts.put(part[-KEPT:])
            self._tail = tail[-KEPT:]
        self._parts.put(self._tail)

    def take(self) -> str:
        """What was printed up to the next mark, or to the end."""
        with suppress(queue.Empty):
            return self._parts.get(timeout=1).decode("utf-8", "replace").strip("\n")
        return ""


class _Process:
    """One worker, and what it says."""

    def __init__(self, job: Job, shown: bool) -> None:
        self._job = job
        self._process = subprocess.Popen(
            [sys.executable, *_options(), "-m", f"{__package__}.worker", job.to_json()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if shown else subprocess.PIPE,
        )
        self._said: queue.Queue[dict[str, Any] | None] = queue.Queue()
        stream, errors = self._process.stdout, self._process.stderr
        self._output = _Output(errors, job.mark.encode()) if errors is not None else None
        self._readers = [self._output.reader] if self._output is not None else []
        if stream is not None:
            self._readers.append(_start(lambda: self._listen(stream), stream))

    def _listen(self, stream: IO[bytes]) -> None:
        with suppress(ValueError):  # a line cut short by the end
            for line in stream:
                self._said.put(json.loads(line))
        self._said.put(None)

    def output(self) -> str:
        """What the subject has printed since the last time."""
        return self._output.take() if self._output is not None else ""

    def hear(self, patience: float, silence: float) -> dict[str, Any] | str:
        """The next message; or why there is none, the process being at its end.

        Seconds are added up from short looks: a machine that stands still does not count.
        """
        waited = silent = 0.0
        while waited < patience and silent < silence:
            before = time.monotonic()
            with suppress(queue.Empty):
                message = self._said.get(timeout=LOOK)
                if message is None:
                    return self._ended()
                if "beat" not in message:
                    return message
                silent = 0.0
            elapsed = min(time.monotonic() - before, 2 * LOOK)
            waited, silent = waited + elapsed, silent + elapsed
            if self._process.poll() is not None and self._said.empty():
                patience = min(patience, waited + 1)  # somebody else may hold the pipe
        if self._process.poll() is not None:
            return self._ended()
        self._ask_for_stack()
        self.kill()
        if silent >= silence:
            return f"the interpreter did not run for {silence:g} s, and its process was ended"
        return f"there was no end after {patience:g} s, and its process was ended"

    def _ended(self) -> str:
        status = self._process.wait()
        if status >= 0:
            return f"its process ended itself with exit status {status}"
        with suppress(ValueError):
            return f"its process died of the signal {signal.Signals(-status).name}"
        return f"its process died of the signal {-status}"

    def _ask_for_stack(self) -> None:
        if sys.platform != "win32":
            self._process.send_signal(signal.SIGUSR1)
            time.sleep(3 * LOOK)

    def stack(self) -> str:
        """Where the subject was when its process came to its end, as far as is known."""
        file = Path(self._job.stacks)
        # It may have ended before it made the file.
        return _readable(file.read_text("utf-8", "replace")) if file.exists() else ""

    def kill(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.wait()
        for reader in self._readers:
            reader.join(1)  # unless a process of the subject's own keeps the pipe


def _later(seconds: float) -> float:
    """The watchdog inside the worker is given the time to say it better."""
    return seconds + min(GRACE, 2 * seconds)


def _readable(stacks: str) -> str:
    """Of all threads' stacks the one that the subject is in, down to the kit."""
    parts = stacks.split("\n\n")
    kit = ("watchdog.py", "subject.py")
    told = next((each for at in kit for each in parts if at in each), stacks)
    cause = parts[0] if parts[0].startswith("Fatal") and told != parts[0] else ""
    lines = [line for line in [cause, *told.splitlines()] if line]
    ours = [at for at, line in enumerate(lines) if HERE in line]
    return "\n".join(lines[: min(ours[0] if ours else FRAMES, FRAMES)])


@dataclass
class Supervisor:
    """Has a subject judged, law by law."""

    job: Job
    seen: Callable[[Verdict], object] | None = None
    """Called with each verdict."""
    begun: Callable[[int, int, str], object] | None = None
    """Called with the number of a law, how many there are, and its name."""
    shown: bool = False
    """Whether the subject's output is shown as it comes."""
    report: Report = field(default_factory=lambda: Report(""))
    """What has been judged so far."""

    def __post_init__(self) -> None:
        self._terms = self.job.terms
        self._plan: list[dict[str, str]] | None = None
        self._under_way: int | None = None
        self._why: str = ""

    def run(self) -> Report:
        """Judge; every law that was chosen gets a verdict."""
        with tempfile.TemporaryDirectory(prefix="tck-") as folder:
            stacks, mark = str(Path(folder, "stacks")), f"\x1e{secrets.token_hex(8)}\x1e"
            stops = 0
            while self._plan is None or self._done < len(self._plan):
                self._under_way = None
                begin = self._done
                job = replace(self.job, begin=begin, terms=self._terms, stacks=stacks, mark=mark)
                self._one_worker(job, stops)
                stops = stops + 1 if self._done == begin else 0
        return self.report

    @property
    def _done(self) -> int:
        return len(self.report.verdicts)

    def _one_worker(self, job: Job, stops: int) -> None:
        """Have one worker judge as much as it can."""
        worker = _Process(job, self.shown)
        try:
            for message in self._messages(worker):
                self._take(message, worker)
            if self._why:
                self._bury(worker, self._why, job.begin, stops)
        finally:
            worker.kill()

    def _messages(self, worker: _Process) -> Iterator[dict[str, Any]]:
        """All messages until the end; `_why` says what kind of an end, if not a good one."""
        self._why = ""
        while True:
            terms = self._terms
            said = worker.hear(_later(terms.longest), _later(terms.stuck))
            if isinstance(said, str):
                self._why = said
                return
            yield said
            if "done" in said or said.get("tired"):
                return

    def _take(self, message: dict[str, Any], worker: _Process) -> None:
        if "bad" in message:
            raise BadCall(message["bad"])
        if "cases" in message:
            self._plan = message["cases"] * self.job.repeat
            self.report.subject = message["subject"]
            if not self._plan:
                raise BadCall("no law judges what the subject gives under the rules asked for")
        elif "begins" in message:
            self._under_way = message["begins"]
            self._tell_of(message["begins"])
        elif "verdict" in message:
            self._under_way = None
            self._terms = Terms(**message["terms"])
            self._add(Verdict.from_json({**message["verdict"], "output": worker.output()}))

    def _tell_of(self, number: int) -> None:
        if self.begun is not None and self._plan is not None:
            self.begun(number + 1, len(self._plan), self._plan[number]["law"])

    def _add(self, verdict: Verdict) -> None:
        self.report.verdicts.append(verdict)
        if self.seen is not None:
            self.seen(verdict)

    def _bury(self, worker: _Process, why: str, begin: int, stops: int) -> None:
        """A worker is dead: say what it died of, in the verdict of the law under way."""
        worker.kill()
        if self._plan is None:
            told = [f"{self.job.where} gave no subject: {why}", worker.stack(), worker.output()]
            raise BadCall("\n".join(filter(None, told)))
        if self._under_way is not None:
            self._add(self._obituary(self._plan[self._under_way], why, worker))
        elif self._done == begin and stops + 1 >= STOPS:
            # It died between two laws again and again: no law is tried for ever.
            self._add(self._obituary(self._plan[begin], f"before it began, {why}", worker))
        if "was ended" in why:
            self._terms = replace(self._terms, stuck=min(self._terms.stuck, IMPATIENT))

    def _obituary(self, case: dict[str, str], why: str, worker: _Process) -> Verdict:
        return Verdict(
            law=case["law"],
            role=case["role"],
            rule=case["rule"],
            # Whatever the law asks for: nobody may end the process.
            strength=Strength.MUST,
            text=case["text"],
            outcome=Outcome.FAIL,
            why=f"rule {case['rule']}: {why}",
            broken=case["rule"],
            stack=worker.stack(),
            output=worker.output(),
        )
