"""The worker: a process of its own that judges, so that its subject can end nobody else's.

It is started by `supervisor` with a `Job`, and answers in lines of JSON on what was its standard
output; whatever the subject prints goes to standard error, from C too. Its beat tells that the
interpreter still runs.
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
from typing import Any, Final, TextIO

from ...testing.safe_repr import safe_repr
from ...testing.virtual_time import VirtualTimeLoop
from ..subject import BadSubject, Subject, find_subject
from ..terms import Terms
from .checking import Case, cases
from .judge import Judge

__all__ = ("BEAT", "LOOPS", "Job", "on_loop")

BEAT: Final = 0.25
"""Seconds from beat to beat."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a worker is to do."""

    where: str
    only: tuple[str, ...] = ()
    """Rules, or names of laws; empty: all."""
    loop: str | None = None
    repeat: int = 1
    begin: int = 0
    """How many cases others have done."""
    memory: int | None = None
    """MiB of address space."""
    terms: Terms = field(default_factory=Terms)
    stacks: str = ""
    """The file for stacks of a dying process."""
    mark: str = ""
    """Printed after each law, to part what the subject prints."""

    def to_json(self) -> str:
        """One argument of a command."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Job":
        """What `to_json` wrote."""
        data: dict[str, Any] = json.loads(text)
        data["only"], data["terms"] = tuple(data["only"]), Terms(**data["terms"])
        return cls(**data)


# -- what is judged --------------------------------------------------------------------------------
def _debug_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    loop.set_debug(True)
    return loop


def _uvloop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        raise BadSubject("uvloop is not installed: pip install 'reactive-aio[uvloop]'") from None
    return uvloop.new_event_loop()


LOOPS: Final[dict[str, Callable[[], asyncio.AbstractEventLoop]]] = {
    "asyncio": asyncio.new_event_loop,
    "debug": _debug_loop,
    "uvloop": _uvloop,
    "virtual": VirtualTimeLoop,
}
"""Makers of the loops that a subject can be judged on, by name."""


def on_loop(subject: Subject, name: str | None) -> Subject:
    """*subject*, to be judged on the loop called *name*."""
    if name is None:
        return subject
    LOOPS[name]().close()  # it must be there
    return replace(subject, loop=LOOPS[name], virtual_time=name == "virtual")


# -- the process -----------------------------------------------------------------------------------
class Channel:
    """Lines of JSON to the supervisor. Without a supervisor there is nothing to do."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def send(self, **message: Any) -> None:
        with self._lock:
            try:
                self._stream.write(json.dumps(message) + "\n")
                self._stream.flush()
            except OSError:
                os._exit(1)

    def beat(self) -> None:
        """For ever."""
        pause = threading.Event()
        while not pause.wait(BEAT):
            self.send(beat=True)


def _open_channel() -> Channel:
    """Standard output becomes the channel's alone; what is printed goes to standard error."""
    sys.stdout.flush()
    mine = os.dup(1)
    os.dup2(2, 1)
    return Channel(os.fdopen(mine, "w", encoding="utf-8"))


def _prepare(job: Job) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor decides
    stacks = open(job.stacks, "w")  # noqa: SIM115 - as long as the process lives
    faulthandler.enable(stacks)
    if sys.platform != "win32":
        import resource

        faulthandler.register(signal.SIGUSR1, stacks)
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        if job.memory is not None:
            size = job.memory * 2**20
            resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _subject(job: Job) -> Subject:
    """The subject; whatever is wrong with it is said in a line."""
    try:
        return on_loop(find_subject(job.where), job.loop)
    except BadSubject:
        raise
    except BaseException as error:
        calls = traceback.extract_tb(error.__traceback__)
        at = f" at {calls[-1].filename}:{calls[-1].lineno}" if calls else ""
        raise BadSubject(f"{job.where} raised {safe_repr(error)}{at}") from None


def _work(job: Job, channel: Channel) -> None:
    subject = _subject(job)
    every = cases(subject, job.only)
    channel.send(subject=subject.name, cases=[_told(case) for case in every])
    judges: dict[str, Judge] = {}
    plan = every * job.repeat
    for number, (role, view, law) in enumerate(plan[job.begin :], job.begin):
        channel.send(begins=number)
        judge = judges.setdefault(role, Judge(view, role, job.terms))
        verdict = judge.judge(law)
        _print_mark(job)
        tired = number + 1 < len(plan) and _is_left_behind(law.name)
        channel.send(verdict=verdict.to_json(), terms=asdict(judge.terms), tired=tired)
        if tired:
            return
    channel.send(done=True)


def _told(case: Case) -> dict[str, str]:
    law = case.law
    about = {"role": case.role, "law": law.name, "rule": law.rule}
    return {**about, "strength": law.strength.value, "text": law.text}


def _print_mark(job: Job) -> None:
    with suppress(Exception):  # the subject may have closed or replaced them
        sys.stdout.flush()
        sys.stderr.flush()
    with suppress(OSError):
        os.write(2, job.mark.encode())


def _is_left_behind(law: str) -> bool:
    """Whether the subject could not be stopped: the next law needs a process without it."""
    return any(thread.name == f"tck {law}" for thread in threading.enumerate())


def main() -> None:
    """Do the job that the only argument says, then end without waiting for anything."""
    job = Job.from_json(sys.argv[1])
    channel = _open_channel()
    _prepare(job)
    threading.Thread(target=channel.beat, name="tck beat", daemon=True).start()
    try:
        _work(job, channel)
    except BadSubject as error:
        channel.send(bad=str(error))
    os._exit(0)


if __name__ == "__main__":
    main()
