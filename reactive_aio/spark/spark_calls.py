"""Blocking calls into Spark for a coroutine, on a thread of its own that ends with it."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from .._core.loop import Future, LoopHandle
from .call_threads import CallThreads
from .errors import is_connect
from .session import activate
from .tagged_jobs import new_tag, tagged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ("SparkCalls",)

T = TypeVar("T")


class SparkCalls:
    """Makes one call at a time. Leaving its ``async with`` cancels the jobs of a pending call."""

    def __init__(self, name: str, spark: "SparkSession") -> None:
        self._spark: Any = spark
        self._tag = new_tag()
        self._loop_handle = LoopHandle(f"{name}()")
        self._threads = CallThreads(self._loop_handle, name, size=1, interrupt=self._interrupt)

    async def call(self, work: Callable[[], T]) -> T:
        """Run *work* on the thread; return its result."""
        result = self._loop_handle.create_future()
        self._threads.call(partial(self._run, work), partial(_settle, result))
        return cast("T", await result)

    def _run(self, work: Callable[[], T]) -> T:
        if not is_connect(self._spark):
            activate(self._spark)
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

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._threads.interrupt()
        self._threads.stop()
        await self._threads.wait_done()


def _settle(future: "Future[Any]", result: Any, error: Exception | None) -> None:
    if future.done():  # cancelled
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
