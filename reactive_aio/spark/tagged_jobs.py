"""The jobs of one subscription: they run with a tag of their own and inherited local properties."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast
from uuid import uuid4

from ._internals import has_pinned_threads
from .errors import explained

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame

__all__ = ("InheritProperties", "TaggedJobs", "inherit_properties", "new_tag", "tagged")

T = TypeVar("T")
InheritProperties = Callable[[Callable[[], Any]], Callable[[], Any]]
"""Wraps a function so that it runs with the local properties of another thread."""

_INTERRUPT: Final = "spark.job.interruptOnCancel"


def inherit_properties(df: "DataFrame") -> InheritProperties:
    """Return a wrapper that runs functions with the local properties this thread has now."""
    from pyspark import util

    untyped: Any = util
    with explained(df):
        return cast("InheritProperties", untyped.inheritable_thread_target(df.sparkSession))


def new_tag() -> str:
    """Return a job tag that no other subscription has."""
    return f"reactive_aio-{uuid4().hex}"


class TaggedJobs:
    """The jobs of one subscription, identified by a tag."""

    def __init__(
        self, df: "DataFrame", inherit: InheritProperties, plan: "Callable[[], DataFrame]"
    ) -> None:
        self.df: DataFrame = df
        """The DataFrame of the flow."""
        self.plan: Callable[[], DataFrame] = plan
        """Makes the DataFrame that is computed, with a plan of its own. Calls the JVM."""
        self._inherit = inherit
        self._tag = new_tag()
        self._thread = threading.local()  # `is_tagged`, on a thread that keeps the properties

    @property
    def context(self) -> "SparkContext":
        return self.df.sparkSession.sparkContext

    def run(self, work: Callable[[], T], *, owns_thread: bool = False) -> T:
        """Run *work*; the jobs that it starts can be cancelled, and its errors are explained.

        The jobs have the local properties of the thread that made the flow, not of this one. With
        *owns_thread*, no other work runs on this thread, so it keeps the properties: setting them
        takes about fifteen calls.
        """
        with explained(self.df):
            if hasattr(self._thread, "is_tagged"):
                return work()
            keeps = owns_thread and has_pinned_threads()
            return cast("T", self._inherit(lambda: self._run_inherited(work, keeps=keeps))())

    def _run_inherited(self, work: Callable[[], T], *, keeps: bool) -> T:
        # All threads that inherit from one thread share one object, and so their tags: inheriting
        # once more, from this thread, makes a copy.
        def run() -> T:
            if not keeps:
                with tagged(self.context, self._tag):
                    return work()
            _set_tag(self.context, self._tag)
            self._thread.is_tagged = True
            return work()

        return cast("T", inherit_properties(self.df)(run)())

    def cancel(self) -> None:
        """Cancel the jobs that run now; more of them may start a moment later."""
        # A lost session has no jobs, and the call that blocks has failed already.
        with suppress(Exception):
            self.context.cancelJobsWithTag(self._tag)


@contextmanager
def tagged(context: "SparkContext", tag: str) -> Generator[None, None, None]:
    """Tag the jobs that are started inside. They keep the properties set when they were started.

    The JVM thread may be shared (``PYSPARK_PIN_THREAD=false``), so its properties are restored.
    """
    before = cast("str", context.getLocalProperty(_INTERRUPT))  # or None, which removes it
    _set_tag(context, tag)
    try:
        yield
    finally:
        with suppress(Exception):  # a session that was lost meanwhile has no properties
            context.removeJobTag(tag)
            context.setLocalProperty(_INTERRUPT, before)


def _set_tag(context: "SparkContext", tag: str) -> None:
    context.addJobTag(tag)
    context.setLocalProperty(_INTERRUPT, "true")  # else a cancelled task keeps its slot to its end
