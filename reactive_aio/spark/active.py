"""The active session of a thread, which Spark looks some things up in."""

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from .failures import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ("activate",)


def activate(spark: "SparkSession") -> None:
    """Make *spark* the active session of this thread, as it is of the one that has made it.

    A thread that PySpark has not seen before, as those of ``asyncio.to_thread``, has none; there,
    ``df.write.format("reactive")`` does not find the data source that was registered with *spark*.
    """
    if is_connect(spark):
        return
    session: Any = spark
    with suppress(AttributeError, TypeError):  # private; where it is not there, as PySpark does it
        session._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(
            session._jsparkSession
        )
        return
    session.createDataFrame([], "nothing int")
