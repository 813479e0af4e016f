"""Calls into Spark for a coroutine: on a thread of its own, which ends with it."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast
from uuid import uuid4

from .._core.loop import Future, LoopHandle
from .active import activate
from .crew import Crew
from .failures import is_connect
from .jobs import tagged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ("Aside",)

T = TypeVar("T")


class Aside:
    """One call at a time. Leaving it ends the call: what it runs in Spark is cancelled."""

    def __init__(self, name: str, spark: "SparkSession") -> None:
        self._spark: Any = spark
        self._tag = f"reactive_aio-{uuid4().hex}"
        self._loop_handle = LoopHandle(f"{name}()")
        self._crew = Crew(self._loop_handle, name, size=1, interrupt=self._interrupt)

    async def call(self, work: Callable[[], T]) -> T:
        """Run *work* on the thread; return what it returns."""
        done = self._loop_handle.create_future()
        self._crew.call(partial(self._tagged, work), partial(_tell, done))
        return cast("T", await done)

    def _tagged(self, work: Callable[[], T]) -> T:
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
        self._crew.interrupt()
        self._crew.dismiss()
        await self._crew.closed()


def _tell(done: "Future[Any]", result: Any, error: Exception | None) -> None:
    if done.done():  # nobody waits any more
        return
    if error is None:
        done.set_result(result)
    else:
        done.set_exception(error)
