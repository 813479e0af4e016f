"""Spark and asyncio: the rows of a DataFrame under demand. Needs the extra ``spark``.

Importing this package imports neither PySpark nor a JVM; that happens when something is used. It
raises ImportError if the PySpark that is installed is older than 3.5.
"""

from sys import modules as _modules

from .._shared.foreign_options import explain_foreign_options as _explain_foreign_options
from .checkpoint import Checkpoint, CheckpointMismatch, CheckpointStore, PlanIdentity
from .conversion import RowMismatch, RowRejected
from .dataframe import SparkFlow, from_dataframe
from .datasource import register
from .datasource.flow_server import ServedFlow, serve_flow
from .datasource.listener import UnencryptedAddress
from .datasource.write_server import ServedWrites, WriteFailed, serve_writes
from .errors import (
    JobCancelled,
    PartitionTooLarge,
    SparkSessionLost,
    StreamStopped,
    UnsupportedDataFrame,
)
from .executors.for_each_partition import PartitionResult, for_each_partition
from .executors.map_flow import MapFlow, map_flow
from .executors.resources import WorkerResource
from .executors.shipping import PipelineNotPicklable
from .executors.spark_connection import TaskAbandoned
from .executors.spark_task import SparkTask, spark_task
from .java import Java, JavaNotFound, ensure_java, find_java
from .progress import Progress, ProgressBar
from .read_mode import ModeUnavailable
from .session import ArchiveUnavailable, activate, archive_classes, local_session
from .spark_version import require_known_version
from .streaming import BatchNotRead, MicroBatch, StreamFlow, from_micro_batches, from_stream
from .terminals import append_table, to_dataframe, write_parquet
from .writing import WriteResult

__all__ = (
    "ArchiveUnavailable",
    "BatchNotRead",
    "Checkpoint",
    "CheckpointMismatch",
    "CheckpointStore",
    "Java",
    "JavaNotFound",
    "JobCancelled",
    "MapFlow",
    "MicroBatch",
    "ModeUnavailable",
    "PartitionResult",
    "PartitionTooLarge",
    "PipelineNotPicklable",
    "PlanIdentity",
    "Progress",
    "ProgressBar",
    "RowMismatch",
    "RowRejected",
    "ServedFlow",
    "ServedWrites",
    "SparkFlow",
    "SparkSessionLost",
    "SparkTask",
    "StreamFlow",
    "StreamStopped",
    "TaskAbandoned",
    "UnencryptedAddress",
    "UnsupportedDataFrame",
    "WorkerResource",
    "WriteFailed",
    "WriteResult",
    "activate",
    "append_table",
    "archive_classes",
    "ensure_java",
    "find_java",
    "for_each_partition",
    "from_dataframe",
    "from_micro_batches",
    "from_stream",
    "local_session",
    "map_flow",
    "register",
    "serve_flow",
    "serve_writes",
    "spark_task",
    "to_dataframe",
    "write_parquet",
)

_explain_foreign_options(_modules[__name__], __all__)
require_known_version()
