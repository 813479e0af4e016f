"""Operators that call functions with the signals that pass, and change none of them.

All are inline stages. The island calls their hooks for the end of the flow (`end_hooks`), and a
flow without such a stage has no cost for them.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from .._core.arguments import OWN_TASK, require_text
from .._core.discard_handler import discard_handler
from ..stage import InlineStage, describe, require_int, require_sync_callable

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = (
    "do_finally",
    "do_on_cancel",
    "do_on_complete",
    "do_on_discard",
    "do_on_error",
    "do_on_next",
    "do_on_request",
    "log",
    "name",
)

T = TypeVar("T")

_ON_NEXT = InlineStage(
    "do_on_next",
    params=("callback",),
    each="""
    $result = $callback(x)
    sync $result of $callback
    """,
)


def _at_end(name: str, how: str, call: str) -> InlineStage:
    return InlineStage(
        name,
        params=("callback",),
        on_end=f"""
        if how == "{how}":
            refuse_awaitable("{name}", $callback, $callback({call}), "{OWN_TASK}")
        """,
    )


_ON_COMPLETE = _at_end("do_on_complete", "completed", "")
_ON_ERROR = _at_end("do_on_error", "failed", "error")
_ON_CANCEL = _at_end("do_on_cancel", "cancelled", "")

_FINALLY = InlineStage(
    "do_finally",
    params=("callback",),
    on_end=f'refuse_awaitable("do_finally", $callback, $callback(how), "{OWN_TASK}")',
)

_ON_REQUEST = InlineStage("do_on_request", params=("callback",), role="on_request")

_ON_DISCARD = InlineStage("do_on_discard", params=("callback",), role="on_discard")

_LOG = InlineStage(
    "log",
    params=("name", "logger", "level"),
    each='$logger.log($level, "%s: on_next(%r)", $name, x)',
    on_end="""
    if how == "completed":
        $logger.log($level, "%s: on_complete", $name)
    elif how == "failed":
        $logger.log($level, "%s: on_error(%r)", $name, error)
    else:
        $logger.log($level, "%s: cancel", $name)
    """,
)


def do_on_next(source: "Flow[T]", callback: Callable[[T], object]) -> "Flow[T]":
    """Call *callback* with each element, before it is passed on.

    ::

        a--b--|
        .do_on_next(print)
        a--b--|

    Demand: passed through.
    Completes: when the source completes.
    Fails: when the source fails, or *callback* raises.
    Cancels: when the subscriber cancels.
    Holds: nothing.
    Rules: 1.4
    """
    require_sync_callable("do_on_next", "callback", callback, "use map_async before it", takes=1)
    return source.via(_ON_NEXT, callback)


def do_on_complete(source: "Flow[T]", callback: Callable[[], object]) -> "Flow[T]":
    """Call *callback* when the flow completes here, before the subscriber is notified.

    ::

        a--b--|
        .do_on_complete(lambda: print("done"))
        a--b--|

    Demand: passed through.
    Completes: when the source completes, after *callback* has returned.
    Fails: when the source fails, or *callback* raises.
    Cancels: when the subscriber cancels.
    Holds: nothing.
    Rules: 1.4, 1.5
    """
    require_sync_callable("do_on_complete", "callback", callback, OWN_TASK, takes=0)
    return source.via(_ON_COMPLETE, callback)


def do_on_error(source: "Flow[T]", callback: Callable[[BaseException], object]) -> "Flow[T]":
    """Call *callback* with the error when the flow fails upstream of here.

    ::

        a--b--#
        .do_on_error(print)
        a--b--#

    Demand: passed through.
    Completes: when the source completes.
    Fails: when the source fails, after *callback* has returned. When *callback* raises, its error
        replaces the first one, which becomes the ``__context__``.
    Cancels: when the subscriber cancels.
    Holds: nothing.
    Rules: 1.4
    """
    require_sync_callable("do_on_error", "callback", callback, OWN_TASK, takes=1)
    return source.via(_ON_ERROR, callback)


def do_on_cancel(source: "Flow[T]", callback: Callable[[], object]) -> "Flow[T]":
    """Call *callback* when the flow is cancelled from downstream, before the source is.

    ::

        a--b--c--|
        .do_on_cancel(lambda: print("cancelled")).take(2)
        a--b|

    The causes: the subscriber cancels or raises, an ``async for`` is left early, a stage downstream
    completes early or fails, or a task is cancelled. An error of *callback* goes to the loop's
    exception handler, as there is no subscriber left to receive it.

    Demand: passed through.
    Completes: when the source completes.
    Fails: when the source fails.
    Cancels: when the subscriber cancels, after *callback* has returned.
    Holds: nothing.
    Rules: 3.12
    """
    require_sync_callable("do_on_cancel", "callback", callback, OWN_TASK, takes=0)
    return source.via(_ON_CANCEL, callback)


def do_on_request(source: "Flow[T]", callback: Callable[[int], object]) -> "Flow[T]":
    """Call *callback* with the *n* of each request that reaches this part of the flow.

    ::

        a--b--|
        .do_on_request(print)
        a--b--|

    Requests pass between islands, not within one: *callback* receives the requests that the
    subscriber, or the next asynchronous operator downstream, makes of the island. For a request on
    another thread it is called on the loop's thread.

    Demand: passed through, after *callback* has returned.
    Completes: when the source completes.
    Fails: when the source fails, or *callback* raises.
    Cancels: when the subscriber cancels.
    Holds: nothing.
    Rules: 3.2, 3.9
    """
    require_sync_callable("do_on_request", "callback", callback, OWN_TASK, takes=1)
    return source.via(_ON_REQUEST, callback)


def do_on_discard(
    source: "Flow[T]",
    callback: Callable[[Any], object],
    *,
    only: type[Any] | tuple[type[Any], ...] = object,
) -> "Flow[T]":
    """Call *callback* with each element that the flow upstream holds when it ends.

    ::

        a--b--|
        .do_on_discard(print)
        a--b--|

    For elements that have to be closed: connections, files, buffers. Operators and queues upstream
    hold elements that they have received and not delivered; when the flow is cancelled, fails or
    completes without them, each is passed to *callback* once. So is an element for which a function
    of the flow raised or was cancelled, one whose source (of ``flat_map`` …) was cut before it had
    sent anything, and a result that arrives too late. Where this is the last operator, so is what
    ``async for`` and the terminal operators have requested and not processed.

    *callback* receives what is held: upstream of a ``map`` the elements before it, downstream of a
    ``buffer`` complete lists, and of ``zip`` tuples. With *only*, it is called for instances of a
    type, or of several.

    Not passed: what was delivered, or made into something else; what operators leave out while they
    run (``filter``, ``distinct``, ``take_last``); what an overflow policy drops (see *on_drop*
    there); what ``share``, ``replay``, ``cache`` and the processors with several subscribers hold,
    while another one may receive it. Elements that a source has not emitted are not held.

    An error of *callback* goes to the loop's exception handler; the elements after it are passed
    all the same.

    Demand: passed through.
    Completes: when the source completes.
    Fails: when the source fails.
    Cancels: when the subscriber cancels.
    Holds: nothing.
    Rules: 3.12
    """
    handler = discard_handler("do_on_discard", callback, only)
    return source.via(_ON_DISCARD, handler)


def do_finally(
    source: "Flow[T]",
    callback: Callable[[Literal["completed", "failed", "cancelled"]], object],
) -> "Flow[T]":
    """Call *callback* once when the flow ends here, with "completed", "failed" or "cancelled".

    ::

        a--b--|
        .do_finally(print)
        a--b--|

    It is called exactly once per subscription, like a ``finally`` clause around everything
    upstream: before the subscriber is notified of the end, and after a cancellation before the next
    statement runs, including ``break`` out of ``async for``. While the flow awaits something, it is
    called when that has ended. Several of them are called in the order in which the signal passes:
    a completion or an error goes downstream, a cancellation upstream.

    Demand: passed through.
    Completes: when the source completes, after *callback* has returned.
    Fails: when the source fails, or *callback* raises; after a cancellation, its error goes to the
        loop's exception handler.
    Cancels: when the subscriber cancels.
    Holds: nothing.
    Rules: 1.4, 1.7, 3.12
    """
    require_sync_callable("do_finally", "callback", callback, OWN_TASK, takes=1)
    return source.via(_FINALLY, callback)


def log(
    source: "Flow[T]",
    name: str = "flow",
    *,
    logger: logging.Logger | str = "reactive_aio",
    level: int = logging.INFO,
    requests: bool = False,
) -> "Flow[T]":
    """Log each signal that passes, as ``name: on_next(element)``.

    ::

        a--b--|
        .log("orders")
        a--b--|

    *logger* is a logger or its name, and *level* one of those of ``logging``. With *requests*,
    demand is logged as well, as it reaches ``do_on_request``.

    Demand: passed through.
    Completes: when the source completes.
    Fails: when the source fails, or the logger raises.
    Cancels: when the subscriber cancels.
    Holds: nothing.
    Rules: 1.4
    """
    require_int("log", "level", level)
    target = _logger_of(name, logger)
    flow: Flow[Any] = source.via(_LOG, name, target, level)
    if not requests:
        return flow

    def log_request(n: int) -> None:
        target.log(level, "%s: request(%d)", name, n)

    return do_on_request(flow, log_request)


def _logger_of(name: object, logger: logging.Logger | str) -> logging.Logger:
    if not isinstance(name, str):
        shown = f"{describe(name)} ({type(name).__name__})"
        raise TypeError(f"log: name must be a str, not {shown}; a logger is given as logger=…")
    if isinstance(logger, str):
        return logging.getLogger(logger)
    if not callable(getattr(cast("object", logger), "log", None)):  # LoggerAdapter has it, too
        shown = f"{describe(logger)} ({type(logger).__name__})"
        raise TypeError(f"log: logger must be a logger or the name of one, not {shown}")
    return logger


_NAME = InlineStage("name", params=("text",), role="label")


def name(source: "Flow[T]", text: str) -> "Flow[T]":
    """Name this part of a flow, for error notes, `explain` and the reports of the package.

    ::

        a--b--|
        .name("orders")
        a--b--|

    Demand: passed through.
    Completes: when the source completes.
    Fails: when the source fails.
    Cancels: when the subscriber cancels.
    Holds: nothing.
    Rules: 1.4
    """
    require_text("name", "text", text)
    if not text:
        raise ValueError("name: text must not be empty: figures and reports are found by it")
    return source.via(_NAME, text)
