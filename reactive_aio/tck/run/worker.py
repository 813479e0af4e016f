"""The worker: a process that judges a candidate, so that the candidate can end no other process.

The `supervisor` starts it with a `Job`. It answers in lines of JSON on its original standard
output; what the candidate prints, from C too, goes to standard error. A periodic message shows that
the interpreter still runs.
"""

import asyncio
import faulthandler
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from ...testing.safe_repr import safe_repr
from ...testing.virtual_time import VirtualTimeLoop
from ..candidate import Candidate, InvalidCandidate, load_candidate
from ..timeouts import Timeouts
from .checking import Judge, cases

ALIVE_INTERVAL: Final = 0.25
"""Seconds between two ``alive`` messages."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a worker judges, and how."""

    where: str
    only: tuple[str, ...] = ()
    """Rules, or names of laws; empty: all."""
    loop: str | None = None
    repeat: int = 1
    begin: int = 0
    """How many cases earlier workers have finished."""
    memory: int | None = None
    """MiB of address space."""
    timeouts: Timeouts = field(default_factory=Timeouts)
    stacks: str = ""
    """The file for the stacks of a dying process."""
    separator: str = ""
    """Printed after each law, to separate the candidate's output."""

    def to_json(self) -> str:
        """One command-line argument."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Job":
        """The job that `to_json` wrote."""
        data: dict[str, Any] = json.loads(text)
        data["only"], data["timeouts"] = tuple(data["only"]), Timeouts(**data["timeouts"])
        return cls(**data)


# -- the candidate ---------------------------------------------------------------------------------
def _debug_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    loop.set_debug(True)
    return loop


def _uvloop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        raise InvalidCandidate(
            "uvloop is not installed: pip install 'reactive-aio[uvloop]'"
        ) from None
    return uvloop.new_event_loop()


LOOPS: Final[dict[str, Callable[[], asyncio.AbstractEventLoop]]] = {
    "asyncio": asyncio.new_event_loop,
    "debug": _debug_loop,
    "uvloop": _uvloop,
    "virtual": VirtualTimeLoop,
}
"""Factories of the loops on which a candidate can be judged, by name."""


def _load(job: Job) -> Candidate:
    """The candidate; any error of its factory becomes a message of one line."""
    try:
        candidate = load_candidate(job.where)
        if job.loop is None:
            return candidate
        LOOPS[job.loop]().close()  # fails now if the loop is not available
        return replace(candidate, loop=LOOPS[job.loop], virtual_time=job.loop == "virtual")
    except InvalidCandidate:
        raise
    except BaseException as error:
        calls = traceback.extract_tb(error.__traceback__)
        at = f" at {calls[-1].filename}:{calls[-1].lineno}" if calls else ""
        raise InvalidCandidate(f"{job.where} raised {safe_repr(error)}{at}") from None


# -- the process -----------------------------------------------------------------------------------
class SupervisorPipe:
    """Sends lines of JSON to the supervisor. Without a supervisor the process exits.

    Reserves standard output for them, and redirects what is printed to standard error.
    """

    def __init__(self) -> None:
        sys.stdout.flush()
        self._stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
        self._lock = threading.Lock()
        os.dup2(2, 1)

    def send(self, **message: Any) -> None:
        with self._lock:
            try:
                self._stream.write(json.dumps(message) + "\n")
                self._stream.flush()
            except OSError:
                os._exit(1)

    def send_alive(self) -> None:
        """Send ``alive`` messages forever."""
        pause = threading.Event()
        while not pause.wait(ALIVE_INTERVAL):
            self.send(alive=True)


def _prepare(job: Job) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor handles Ctrl-C
    stacks = open(job.stacks, "w")  # noqa: SIM115 - as long as the process lives
    faulthandler.enable(stacks)
    if sys.platform != "win32":
        import resource

        faulthandler.register(signal.SIGUSR1, stacks)
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        if job.memory is not None:
            size = job.memory * 2**20
            resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _run(job: Job, pipe: SupervisorPipe) -> None:
    candidate = _load(job)
    every = cases(candidate, job.only)
    pipe.send(candidate=candidate.name, cases=[(case.role, case.law.name) for case in every])
    judges: dict[str, Judge] = {}
    plan = every * job.repeat
    for number, case in enumerate(plan[job.begin :], job.begin):
        pipe.send(begins=number)
        judge = judges.setdefault(case.role, Judge(job.timeouts))
        verdict = judge.judge(case)
        _print_separator(job)
        # A candidate that cannot be stopped continues in its thread.
        is_abandoned = any(each.name == f"tck {case.law.name}" for each in threading.enumerate())
        ends = number + 1 < len(plan) and is_abandoned
        pipe.send(verdict=verdict.to_json(), timeouts=asdict(judge.timeouts), needs_restart=ends)
        if ends:
            return
    pipe.send(done=True)


def _print_separator(job: Job) -> None:
    with suppress(Exception):  # the candidate may have closed or replaced them
        sys.stdout.flush()
        sys.stderr.flush()
    with suppress(OSError):
        os.write(2, job.separator.encode())


def main() -> None:
    """Do the job in the only argument, then end without waiting for other threads."""
    job = Job.from_json(sys.argv[1])
    pipe = SupervisorPipe()
    _prepare(job)
    pipe.send(ready=True)
    threading.Thread(target=pipe.send_alive, name="tck alive", daemon=True).start()
    try:
        _run(job, pipe)
    except InvalidCandidate as error:
        pipe.send(invalid=str(error))
    os._exit(0)


if __name__ == "__main__":
    main()
