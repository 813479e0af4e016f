"""Candidates that do what no candidate should, for the tests of the watchdog and of the command."""

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
"""Ends what would go on for ever; a test sets it when it has seen enough."""


class Unruly:
    """A publisher whose subscribe() is *act*."""

    def __init__(self, act: Callable[[Subscriber[Any]], object]) -> None:
        self._act = act

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        self._act(subscriber)


class Silent:
    """A subscription that does nothing."""

    def request(self, n: int, /) -> None: ...

    def cancel(self) -> None: ...


def doing(act: Callable[[Subscriber[Any]], object]) -> Callable[[], Candidate]:
    return lambda: Candidate(publisher=lambda _: Unruly(act))


# -- what is stopped inside a process --------------------------------------------------------------
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
    """Not even on_subscribe."""


def fail(_: object) -> None:
    raise ValueError("not today")


class Flood(Silent):
    """Answers the first request with elements without end, before it returns."""

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


LEFT: Final[list[object]] = []


def leave_everything(subscriber: Subscriber[Any]) -> None:
    """Serve as one should, but leave a task, a timer and a thread that go on."""
    loop = asyncio.get_running_loop()

    async def go_on() -> None:
        while True:  # noqa: ASYNC110 - the fault
            await asyncio.sleep(0.001)

    def again() -> None:
        loop.call_later(0.001, again)

    again()
    LEFT.append(asyncio.ensure_future(go_on()))
    thread = threading.Thread(target=RELEASE.wait, name="left by a candidate", daemon=True)
    thread.start()
    LEFT.append(thread)
    rx.range(3).subscribe(subscriber)


# -- what takes a process with it ------------------------------------------------------------------
def leave_the_process(_: object) -> None:
    print("about to leave", flush=True)  # noqa: T201
    os._exit(3)


def crash(_: object) -> None:
    ctypes.string_at(0)


def keep_the_interpreter(_: object) -> None:
    sum(range(10**12))


def eat_memory(_: object) -> None:
    LEFT.append(bytearray(2**36))


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
            time.sleep(0.3)
            for element in range(n):
                subscriber.on_next(element)

    subscriber.on_subscribe(Slow())


def sleep_and_tell(_: object) -> None:
    print("under way in", os.getpid(), flush=True)  # noqa: T201
    time.sleep(1000)


leaves = doing(leave_the_process)
crashes = doing(crash)
keeps = doing(keep_the_interpreter)
eats = doing(eat_memory)
fails = doing(fail)
names = doing(name_the_loop)
sleeps = doing(sleep_and_tell)


def good() -> Candidate:
    return Candidate(name="three at most", publisher=rx.range, max_elements=3)


def prints() -> Candidate:
    return Candidate(publisher=lambda _: Unruly(print_much), max_elements=3)


def slow() -> Candidate:
    return Candidate(publisher=lambda _: Unruly(hold_up_requests), max_elements=9)


def too_small() -> Candidate:
    return Candidate(publisher=lambda _: Unruly(fail), max_elements=0, completes=False)


def hangs() -> Candidate:
    print("waiting for a candidate", flush=True)  # noqa: T201
    time.sleep(1000)
    return good()


def raises() -> Candidate:
    raise ZeroDivisionError("no candidate")


def no_candidate() -> object:
    return object()


def tells_its_options() -> Candidate:
    flags = sys.flags
    told = f"optimize={flags.optimize} dev_mode={flags.dev_mode}"
    print(told, sys.warnoptions[-1], flush=True)  # noqa: T201
    return good()


def exits() -> Candidate:
    sys.exit("I am a script")
