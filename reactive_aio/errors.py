"""The exceptions of the package. Each names the cause, the rule it is based on, and the remedy.

They are sorted by the side at fault: the caller (``IllegalDemand``, ``NotAnElement``,
``AlreadySubscribed``, ``NoRunningLoop``, ``WrongLoop``, ``MissingExtra``), the other side
(``RuleViolation``), or the flow itself (``Overflow``, ``TimedOut``, ``EmptyFlow``,
``TooManyElements``, ``FrameTooLong``, ``ProcessFailed``, ``Stalled``, ``Interrupted``).

Every error that leaves a flow has a note with the operators of the flow, the failing one marked,
and the element that it failed with; `show_elements` leaves the elements out.
"""

from collections.abc import Sequence
from signal import Signals
from typing import Final

__all__ = (
    "AlreadySubscribed",
    "EmptyFlow",
    "FrameTooLong",
    "IllegalDemand",
    "Interrupted",
    "MissingExtra",
    "NoRunningLoop",
    "NotAnElement",
    "Overflow",
    "ProcessFailed",
    "ReactiveError",
    "RuleViolation",
    "Stalled",
    "TimedOut",
    "TooManyElements",
    "WrongLoop",
    "show_elements",
)


class ReactiveError(Exception):
    """The root of the package's own exceptions; `rule` is the specification's number, if any."""

    rule: str | None = None


class IllegalDemand(ReactiveError, ValueError):
    """``request(n)`` with an *n* that is not a positive ``int`` (rule 3.9)."""

    rule: str | None = "3.9"

    def __init__(self, n: object) -> None:
        super().__init__(
            f"rule 3.9: non-positive subscription request: request({n!r}). "
            "Request an int of at least 1; call cancel() to stop."
        )
        self.n: object = n


class NotAnElement(ReactiveError, TypeError):
    """``None`` in place of a subscriber, a subscription, an element or an error (1.9, 2.13)."""

    rule: str | None = "2.13"

    def __init__(self, message: str, *, rule: str = "2.13") -> None:
        super().__init__(f"rule {rule}: {message}")
        self.rule: str | None = rule


class AlreadySubscribed(ReactiveError, RuntimeError):
    """A second subscription to a source that serves one (rules 1.10, 1.11, 2.5, 2.12)."""

    rule: str | None = "1.11"


class RuleViolation(ReactiveError, RuntimeError):
    """The other side violated a rule of the specification, and has been cancelled."""

    def __init__(self, rule: str, what: str) -> None:
        super().__init__(f"rule {rule} violated: {what}")
        self.rule: str | None = rule
        self.what: str = what


class NoRunningLoop(ReactiveError, RuntimeError):
    """There is no running event loop; a subscription belongs to the one that runs."""

    def __init__(self, what: str = "subscribe()") -> None:
        super().__init__(
            f"{what} needs a running asyncio event loop: call it from async code, "
            "for example under asyncio.run(...)."
        )


class WrongLoop(ReactiveError, RuntimeError):
    """A call outside the event loop that an object belongs to: in another loop, or a thread."""

    def __init__(self, call: str, remedy: str, *, is_closed: bool) -> None:
        if is_closed:
            why = "its event loop is closed; make a new one for each asyncio.run()"
        else:
            why = f"it belongs to an event loop that does not run here; {remedy}"
        super().__init__(f"{call}: {why}")


class Overflow(ReactiveError):
    """A bounded queue is full, and its overflow policy is ``"fail"``."""

    def __init__(self, where: str, capacity: int, remedy: str = "") -> None:
        remedy = remedy or (
            "request more, make the capacity larger, or choose a policy that drops: "
            "drop_newest, drop_oldest or latest."
        )
        super().__init__(
            f"{where} holds {capacity} elements, its capacity, and got another: {remedy}"
        )
        self.capacity: int = capacity


class TimedOut(ReactiveError, TimeoutError):
    """A time limit has passed without a signal."""


class FrameTooLong(ReactiveError, ValueError):
    """A line, or another part of bytes, is longer than allowed."""

    def __init__(self, operator: str, limit: int) -> None:
        super().__init__(
            f"{operator}: more than limit={limit} bytes without a separator; give a larger limit, "
            "or look whether the separator is the right one"
        )
        self.limit: int = limit


class ProcessFailed(ReactiveError):
    """A program has ended with another status than 0, or by a signal.

    *returncode* is negative for a signal. *stderr* is the end of what it wrote to its standard
    error.
    """

    def __init__(self, argv: Sequence[str], returncode: int, stderr: bytes) -> None:
        self.argv: tuple[str, ...] = tuple(argv)
        self.returncode: int = returncode
        self.stderr: bytes = stderr
        message = f"{argv[0]!r} {_ending(returncode)}"
        if text := stderr.decode(errors="replace").strip():
            message += f"; its stderr ends with:\n{text[-_SHOWN_STDERR:]}"
        super().__init__(message)


_SHOWN_STDERR: Final = 2000
"""Characters in a message."""


def _ending(returncode: int) -> str:
    if returncode >= 0:
        return f"exited with status {returncode}"
    try:
        name = Signals(-returncode).name
    except ValueError:
        name = "unknown"
    return f"was ended by signal {-returncode} ({name})"


class Stalled(ReactiveError):
    """A flow waits for what follows it, and what follows waits for the flow."""


class EmptyFlow(ReactiveError, LookupError):
    """The flow completed without the required element."""


class TooManyElements(ReactiveError, ValueError):
    """The flow has more elements than allowed."""


class Interrupted(ReactiveError):
    """The task of a subscription was cancelled from outside, its loop was closed, the publisher of
    a hot source was cancelled when the last subscriber left, or the flow of a window or a group has
    failed or was cancelled before the window or group was subscribed to."""


class MissingExtra(ReactiveError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs the extra {extra!r}: pip install 'reactive-aio[{extra}]'"
        )
        self.extra: str = extra


_are_elements_shown = True


def show_elements(shown: bool) -> None:
    """Set whether the notes of errors show elements, shortened to 200 characters.

    They do by default. In a program whose elements are confidential, call ``show_elements(False)``
    when it starts: the setting is that of the process.
    """
    global _are_elements_shown
    _are_elements_shown = shown


def are_elements_shown() -> bool:
    """Whether the notes of errors show elements."""
    return _are_elements_shown
