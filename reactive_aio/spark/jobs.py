"""The jobs of one subscription: whose properties they have, and how they are told from others."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast
from uuid import uuid4

from .failures import telling

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame

__all__ = ("Inherit", "Jobs", "drop", "inheriting", "tagged")

T = TypeVar("T")
Inherit = Callable[[Callable[[], Any]], Callable[[], Any]]

_INTERRUPT: Final = "spark.job.interruptOnCancel"


def inheriting(df: "DataFrame") -> Inherit:
    """Make what runs a function with the local properties, as they are now, of this thread."""
    from pyspark import util

    untyped = cast("Any", util)
    with telling(df):
        return cast("Inherit", untyped.inheritable_thread_target(df.sparkSession))


def _pinned() -> bool:
    """Whether each thread has a thread of the JVM for itself (PYSPARK_PIN_THREAD, the default)."""
    from py4j.clientserver import ClientServer
    from pyspark import SparkContext

    untyped: Any = SparkContext
    return isinstance(untyped._gateway, ClientServer)


def drop(context: "SparkContext", *handles: Any) -> None:
    """Have the JVM let go, now, of what *handles* stand for; they are not to be used any more.

    py4j does so when a handle is no more, up to a second later; and one of which a method was
    called is in a cycle, so it first waits for the garbage collector. Meanwhile the JVM would keep
    all that has gone through the hands of a server of rows.
    """
    untyped: Any = context
    client = untyped._gateway._gateway_client
    now = {"enqueue": False} if _pinned() else {}
    for each in handles:
        client.garbage_collect_object(each._target_id, **now)


class Jobs:
    """What one subscription runs in Spark, under a tag of its own."""

    def __init__(self, df: "DataFrame", inherit: Inherit, fresh: "Callable[[], DataFrame]") -> None:
        self.df: DataFrame = df
        """What was handed in."""
        self.fresh: Callable[[], DataFrame] = fresh
        """Makes the DataFrame that is computed, with a plan of its own. Asks the JVM."""
        self._inherit = inherit
        self._tag = f"reactive_aio-{uuid4().hex}"
        self._ready = threading.local()  # whether a thread has the properties, and keeps them

    @property
    def context(self) -> "SparkContext":
        return self.df.sparkSession.sparkContext

    def begin(self, work: Callable[[], T], *, alone: bool = False) -> T:
        """Run *work* so that the jobs begun in it can be cancelled; its errors say what happened.

        The jobs have the local properties of the thread that made the flow, not of this one. A
        thread that is *alone* with this subscription keeps them: they cost some fifteen calls.
        """
        with telling(self.df):
            if hasattr(self._ready, "here"):
                return work()
            keep = alone and _pinned()
            return cast("T", self._inherit(lambda: self._begin_alone(work, keep=keep))())

    def _begin_alone(self, work: Callable[[], T], *, keep: bool) -> T:
        # All that inherit from one thread get the very same object, and would share their tags:
        # inheriting once more, from this thread, makes a copy.
        def begin() -> T:
            if not keep:
                with tagged(self.context, self._tag):
                    return work()
            _tag(self.context, self._tag)
            self._ready.here = True
            return work()

        return cast("T", inheriting(self.df)(begin)())

    def telling(self) -> "Any":
        """Let what is raised inside say what happened."""
        return telling(self.df)

    def cancel(self) -> None:
        """Cancel the jobs that run now; there may be more of them a moment later."""
        # A session that is gone has no jobs, and the call that blocks has noticed by itself.
        with suppress(Exception):
            self.context.cancelJobsWithTag(self._tag)


@contextmanager
def tagged(context: "SparkContext", tag: str) -> Generator[None, None, None]:
    """Tag the jobs of what is begun here: they keep what was set in the thread that began them.

    The thread may be shared (``PYSPARK_PIN_THREAD=false``), so it gets everything back.
    """
    before = cast("str", context.getLocalProperty(_INTERRUPT))  # or None, which removes it
    _tag(context, tag)
    try:
        yield
    finally:
        with suppress(Exception):  # a session that was lost meanwhile has nothing left to restore
            context.removeJobTag(tag)
            context.setLocalProperty(_INTERRUPT, before)


def _tag(context: "SparkContext", tag: str) -> None:
    context.addJobTag(tag)
    context.setLocalProperty(_INTERRUPT, "true")  # else a cancelled task keeps its slot to its end
