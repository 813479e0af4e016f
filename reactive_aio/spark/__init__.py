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

__all__ = (
    "Java",
    "JavaNotFound",
    "ModeUnavailable",
    "Progress",
    "ProgressBar",
    "SparkFlow",
    "SparkSessionLost",
    "UnsupportedDataFrame",
    "ensure_java",
    "find_java",
    "from_dataframe",
    "local_session",
)
