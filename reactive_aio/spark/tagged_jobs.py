"""Jobs with a tag, by which they are cancelled: of one subscription, and of a coroutine's calls."""

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast
from uuid import uuid4

from .._core.loop import LoopHandle
from .._core.observation.registry import current_flow
from .._core.observation.tracing import trace_headers
from ._internals import (
    LocalProperties,
    clear_session_tags,
    has_observation,
    has_pinned_threads,
    observation_publisher,
)
from .call_threads import CallThreads
from .errors import JobCancelled, StreamStopped, UnsupportedDataFrame, explained, is_connect
from .executor_watch import watch_executors
from .session import activate
from .spark_version import pyspark_version
from .thread_pool import NEW_THREADS

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
InheritProperties = Callable[[Callable[[], Any]], Callable[[], Any]]
"""Wraps a function so that it runs with the local properties of another thread."""

_INTERRUPT: Final = "spark.job.interruptOnCancel"
_DESCRIPTION: Final = "spark.job.description"


def inherit_properties(df: "DataFrame") -> InheritProperties:
    """Return a wrapper that runs functions with the local properties this thread has now."""
    from pyspark import util

    untyped: Any = util
    with explained(df):
        if pyspark_version() >= (4, 0):
            return cast("InheritProperties", untyped.inheritable_thread_target(df.sparkSession))
        # Before 4.0 it takes only a function, and inherits the properties of the time it does.
        inherited = untyped.inheritable_thread_target(_call)
        return partial(partial, inherited)


def _call(work: Callable[[], T]) -> T:
    return work()


def new_tag() -> str:
    """Return a job tag that no other subscription has."""
    return f"reactive_aio-{uuid4().hex}"


@contextmanager
def tagged(context: "SparkContext", *tags: str) -> Generator[None, None, None]:
    """Tag the jobs that are started inside. They keep the properties set when they were started.

    The JVM thread may be shared (``PYSPARK_PIN_THREAD=false``), so its properties are restored.
    """
    properties = _job_properties(context)
    before = {name: context.getLocalProperty(name) for name in properties}
    _set_tags(context, tags, properties)
    try:
        yield
    finally:
        with suppress(Exception):  # a session that was lost meanwhile has no properties
            for tag in tags:
                context.removeJobTag(tag)
            for name, value in before.items():
                context.setLocalProperty(name, cast("str", value))  # or None, which removes it


def _set_tags(context: "SparkContext", tags: Iterable[str], properties: Mapping[str, str]) -> None:
    for tag in tags:
        context.addJobTag(tag)
    for name, value in properties.items():
        context.setLocalProperty(name, value)


def _job_properties(context: "SparkContext") -> dict[str, str]:
    """The local properties of jobs, which their tasks have as well.

    Those of a named flow are described by its name, unless they have another description; and the
    headers of the trace that is current on this thread are added (see `observe.otel`).
    """
    properties = {_INTERRUPT: "true"}  # else a cancelled task keeps its slot to its end
    flow = current_flow.get()
    if flow is not None and not context.getLocalProperty(_DESCRIPTION):
        properties[_DESCRIPTION] = flow.name
    return properties | dict(trace_headers())


# -- one subscription ------------------------------------------------------------------------------
def _belong_to_no_query() -> bool:
    return False


@dataclass(eq=False)
class TaggedJobs:
    """The jobs of one subscription, identified by a tag."""

    df: "DataFrame"
    """The DataFrame of the flow."""
    inherit: InheritProperties
    plan: "Callable[[], DataFrame]"
    """Makes the DataFrame that is computed, with a plan of its own. Calls the JVM."""
    tags: tuple[str, ...] = ()
    """Tags by which the session interrupts them, beside their own."""
    is_query_stopped: Callable[[], bool] = _belong_to_no_query
    """Whether the streaming query of the jobs, if any, was stopped, which cancels them."""
    is_cancelled: bool = field(default=False, init=False)
    """Whether their errors are dropped, as the subscription has ended."""
    _tag: str = field(default_factory=new_tag, init=False)
    _properties: LocalProperties | None = field(default=None, init=False)

    @property
    def context(self) -> "SparkContext":
        return self.df.sparkSession.sparkContext

    @contextmanager
    def explained(self) -> Generator[None, None, None]:
        """Explain errors, as the function does, unless they are of a subscription that has ended.

        To explain an error, the JVM is asked a hundred times.
        """
        try:
            yield
        except Exception:
            if self.is_cancelled:
                raise
            try:
                with explained(self.df):
                    raise
            except JobCancelled as error:
                if self.is_query_stopped():
                    raise StreamStopped("the rows of a micro-batch") from error
                raise

    @contextmanager
    def starting(self) -> Generator[None, None, None]:
        """The jobs that are started inside can be cancelled, and errors are explained.

        The jobs have the local properties of the thread that made the flow, not of this one, which
        made calls of other subscriptions before, and makes others afterwards.
        """
        with self.explained():
            watch_executors(self.context, self)
            if not has_pinned_threads(self.context):  # no thread has properties of its own
                with tagged(self.context, self._tag, *self.tags):
                    yield
                return
            if self._properties is None:
                self._properties = self._make_properties()
            else:  # about fifteen calls fewer
                self._properties.apply()
            yield

    def _make_properties(self) -> LocalProperties:
        # All threads that inherit from one thread share one object, and so their tags: inheriting
        # once more, from this thread, makes a copy.
        self.inherit(lambda: inherit_properties(self.df)(lambda: None)())()
        clear_session_tags(self.df.sparkSession)
        _set_tags(self.context, (self._tag, *self.tags), _job_properties(self.context))
        return LocalProperties(self.context)

    def close(self) -> None:
        """Release what is held in the JVM. Calls the JVM."""
        if self._properties is not None:
            self._properties.close()

    def observe(self, dataset: Any) -> Callable[[Any], object] | None:
        """Return a function that completes the observations of *dataset*, if it has any.

        Tasks collect the metrics of ``df.observe(observation, ...)``, whichever action starts the
        jobs. But Spark completes an `Observation` at the end of a SQL query only, and neither
        windows of partitions nor the local iterator of an RDD are one: ``Observation.get`` would
        wait for ever. (``df.toLocalIterator()`` ends its query before it begins to read, so ``get``
        returns 0.) So a subscription completes its observations when it ends, for whatever reason:
        it calls the function with the dataset that was computed. As with Spark's own actions, the
        metrics cover the rows computed until then, and the first subscription completes the
        observation. Both calls ask the JVM; raises if the observations cannot be completed.
        """
        if not has_observation(dataset):
            return None
        try:
            return observation_publisher(self.context, dataset)
        except Exception as error:
            raise UnsupportedDataFrame(
                "from_dataframe() cannot complete the Observation of this DataFrame: this version "
                "of Spark has no way to do that, and Observation.get would wait for ever. Leave "
                "df.observe() out, or read what df.toArrow() or df.collect() returns."
            ) from error

    def cancel(self) -> None:
        """Cancel the jobs that run now; more of them may start a moment later."""
        self.is_cancelled = True
        # A lost session has no jobs, and the call that blocks has failed already.
        with suppress(Exception):
            self.context.cancelJobsWithTag(self._tag)


# -- the calls of a coroutine ----------------------------------------------------------------------
class SparkCalls(AbstractAsyncContextManager["SparkCalls"]):
    """Makes one call at a time. Leaving its ``async with`` cancels the jobs of a pending call."""

    def __init__(self, name: str, spark: "SparkSession") -> None:
        self._spark: Any = spark
        self._tag = new_tag()
        self._loop_handle = LoopHandle(f"{name}()")
        self._threads = CallThreads(
            self._loop_handle, name, interrupt=self._interrupt, pool=NEW_THREADS
        )

    async def call(self, work: Callable[[], T]) -> T:
        """Run *work* on the thread; return its result."""
        future = self._loop_handle.create_future()

        def settle(result: T | None, error: Exception | None) -> None:
            if future.done():  # cancelled
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        self._threads.call(partial(self._run, work), settle)
        return cast("T", await future)

    def _run(self, work: Callable[[], T]) -> T:
        with explained(self._spark):
            return self._run_tagged(work)

    def _run_tagged(self, work: Callable[[], T]) -> T:
        if not is_connect(self._spark):
            activate(self._spark)
            watch_executors(self._spark.sparkContext, self)
            with tagged(self._spark.sparkContext, self._tag):
                return work()
        self._spark.addTag(self._tag)
        try:
            return work()
        finally:
            with suppress(Exception):  # a session that was lost meanwhile has no tags
                self._spark.removeTag(self._tag)

    def _interrupt(self) -> None:
        with suppress(Exception):
            if is_connect(self._spark):
                self._spark.interruptTag(self._tag)
            else:
                self._spark.sparkContext.cancelJobsWithTag(self._tag)

    async def __aexit__(self, *_: object) -> None:
        self._threads.interrupt()
        self._threads.stop()
        await self._threads.wait_done()
