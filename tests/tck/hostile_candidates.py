"""Candidates that block, crash or leak, for the tests of the watchdog and of the command."""

import asyncio
import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import reactive_aio as rx
from reactive_aio.spec import Publisher, Subscriber
from reactive_aio.tck import Candidate

RELEASE: Final = threading.Event()
"""Ends endless loops when a test is done."""


class HostilePublisher:
    """A publisher whose subscribe() is *act*."""

    def __init__(self, act: Callable[[Subscriber[Any]], object]) -> None:
        self._act = act

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        self._act(subscriber)


class Silent:
    """A subscription that does nothing."""

    def request(self, n: int, /) -> None: ...

    def cancel(self) -> None: ...


def candidate_with(act: Callable[[Subscriber[Any]], object]) -> Callable[[], Candidate]:
    return lambda: Candidate(publisher=lambda _: HostilePublisher(act))


# -- stopped inside the process --------------------------------------------------------------------
def spin(_: object = None) -> None:
    while not RELEASE.is_set():
        pass


def spin_and_swallow(_: object = None) -> None:
    while not RELEASE.is_set():
        try:
            spin()
        except BaseException:
            continue


def wait_in_c(_: object = None) -> None:
    RELEASE.wait()


def never_answer(_: object) -> None:
    """Sends no signal, not even on_subscribe."""


def fail(_: object) -> None:
    raise ValueError("not today")


class Flood(Silent):
    """Sends elements without end inside the first request."""

    def __init__(self, subscriber: Subscriber[Any]) -> None:
        self._subscriber = subscriber

    def request(self, n: int, /) -> None:
        while not RELEASE.is_set():
            self._subscriber.on_next(n)


def flood(subscriber: Subscriber[Any]) -> None:
    subscriber.on_subscribe(Flood(subscriber))


def answer_wrongly_and_hang(subscriber: Subscriber[Any]) -> None:
    class Hanging(Silent):
        def cancel(self) -> None:
            spin()

    subscriber.on_next(1)
    subscriber.on_subscribe(Hanging())


async def never_made(_: int) -> Publisher[Any]:
    await asyncio.Event().wait()
    return rx.range(0)


def spin_in_factory(n: int) -> Publisher[Any]:
    spin()
    return rx.range(n)


LEAKED: Final[list[object]] = []


def leave_everything(subscriber: Subscriber[Any]) -> None:
    """Conform, but leave a task, a timer and a thread running."""
    loop = asyncio.get_running_loop()

    async def run_forever() -> None:
        while True:  # noqa: ASYNC110 - the flaw
            await asyncio.sleep(0.001)

    def again() -> None:
        loop.call_later(0.001, again)

    again()
    LEAKED.append(asyncio.ensure_future(run_forever()))
    thread = threading.Thread(target=RELEASE.wait, name="leaked by a candidate", daemon=True)
    thread.start()
    LEAKED.append(thread)
    rx.range(3).subscribe(subscriber)


# -- ending the process ----------------------------------------------------------------------------
def leave_the_process(_: object) -> None:
    print("about to leave", flush=True)  # noqa: T201
    os._exit(3)


def crash(_: object) -> None:
    ctypes.string_at(0)


def keep_the_interpreter(_: object) -> None:
    sum(range(10**12))


def eat_memory(_: object) -> None:
    LEAKED.append(bytearray(2**36))


def print_much(subscriber: Subscriber[Any]) -> None:
    for _ in range(2_000):
        sys.stdout.write("{}" * 500 + "\n")
    os.write(1, b'{"verdict": "from the candidate", "done": true}\n')
    rx.range(3).subscribe(subscriber)


def name_the_loop(_: object) -> None:
    raise ValueError(f"on {type(asyncio.get_running_loop()).__name__}")


def hold_up_requests(subscriber: Subscriber[Any]) -> None:
    """Rule 3.4 is a SHOULD."""

    class Slow(Silent):
        def request(self, n: int, /) -> None:
            until = time.thread_time() + 0.2  # processor time, as on a quiet machine
            while time.thread_time() < until:
                pass
            for element in range(n):
                subscriber.on_next(element)

    subscriber.on_subscribe(Slow())


def sleep_and_tell(_: object) -> None:
    print("under way in", os.getpid(), flush=True)  # noqa: T201
    time.sleep(1000)


leaves = candidate_with(leave_the_process)
crashes = candidate_with(crash)
keeps = candidate_with(keep_the_interpreter)
eats = candidate_with(eat_memory)
fails = candidate_with(fail)
names = candidate_with(name_the_loop)
sleeps = candidate_with(sleep_and_tell)


def good() -> Candidate:
    return Candidate(name="three at most", publisher=rx.range, max_elements=3)


def prints() -> Candidate:
    return Candidate(publisher=lambda _: HostilePublisher(print_much), max_elements=3)


def slow() -> Candidate:
    return Candidate(publisher=lambda _: HostilePublisher(hold_up_requests), max_elements=9)


def too_small() -> Candidate:
    return Candidate(publisher=lambda _: HostilePublisher(fail), max_elements=0, completes=False)


def raises() -> Candidate:
    raise ZeroDivisionError("no candidate")


def not_a_candidate() -> object:
    return object()


def prints_its_options() -> Candidate:
    flags = sys.flags
    options = f"optimize={flags.optimize} dev_mode={flags.dev_mode}"
    print(options, sys.warnoptions[-1], flush=True)  # noqa: T201
    return good()


def exits() -> Candidate:
    sys.exit("I am a script")
