"""Spark and asyncio: the rows of a DataFrame under demand. Needs the extra ``spark``.

Importing this package imports neither PySpark nor a JVM; that happens when something is used.
"""

from .dataframe import from_dataframe
from .failures import SparkSessionLost, UnsupportedDataFrame
from .flow import SparkFlow
from .java import Java, JavaNotFound, ensure_java, find_java
from .mode import ModeUnavailable
from .progress import Progress
from .progress_bar import ProgressBar
from .session import local_session
from .streaming import MicroBatch, StreamFlow, StreamStopped, from_micro_batches, from_stream

__all__ = (
    "Java",
    "JavaNotFound",
    "MicroBatch",
    "ModeUnavailable",
    "Progress",
    "ProgressBar",
    "SparkFlow",
    "SparkSessionLost",
    "StreamFlow",
    "StreamStopped",
    "UnsupportedDataFrame",
    "ensure_java",
    "find_java",
    "from_dataframe",
    "from_micro_batches",
    "from_stream",
    "local_session",
)
