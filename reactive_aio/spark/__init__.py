"""Spark and asyncio: the rows of a DataFrame under demand. Needs the extra ``spark``.

Importing this package imports neither PySpark nor a JVM; that happens when something is used.
"""

from .active import activate
from .archive import NoArchive, archive_classes
from .dataframe import from_dataframe
from .datasource import (
    ServedFlow,
    ServedWrites,
    WriteFailed,
    register,
    serve_flow,
    serve_writes,
)
from .failures import SparkSessionLost, UnsupportedDataFrame
from .flow import SparkFlow
from .java import Java, JavaNotFound, ensure_java, find_java
from .mode import ModeUnavailable
from .progress import Progress
from .progress_bar import ProgressBar
from .session import local_session
from .sinks import Written, append_table, to_dataframe, write_parquet
from .streaming import MicroBatch, StreamFlow, StreamStopped, from_micro_batches, from_stream

__all__ = (
    "Java",
    "JavaNotFound",
    "MicroBatch",
    "ModeUnavailable",
    "NoArchive",
    "Progress",
    "ProgressBar",
    "ServedFlow",
    "ServedWrites",
    "SparkFlow",
    "SparkSessionLost",
    "StreamFlow",
    "StreamStopped",
    "UnsupportedDataFrame",
    "WriteFailed",
    "Written",
    "activate",
    "append_table",
    "archive_classes",
    "ensure_java",
    "find_java",
    "from_dataframe",
    "from_micro_batches",
    "from_stream",
    "local_session",
    "register",
    "serve_flow",
    "serve_writes",
    "to_dataframe",
    "write_parquet",
)
