"""A Spark session on this machine, with quiet logs and a Java that was found for it."""

import logging
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .._core.arguments import require_int
from ._internals import bind_active_session, gateway_process
from .class_data_sharing import archive_options
from .errors import is_connect, require_pyspark
from .java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ("activate", "local_session")

_DEFAULTS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Loopback only: no look-up of the host's name, and no port is open to the network.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Results of up to 32 MB go from a task to the driver, which is the same JVM, in one piece.
    # From 1 MB on they would pass through the block manager, which takes a tenth longer.
    "spark.task.maxDirectResultSize": "32m",
}
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_LOG_CONFIGURATION: Final = Path(__file__).with_name("quiet.log4j2.properties")
# They print every failed query to stderr as JSON, although it is raised as well.
_QUERY_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def local_session(
    name: str = "reactive_aio",
    *,
    cores: int | None = None,
    quick: bool = False,
    niceness: int = 5,
    config: Mapping[str, str] | None = None,
) -> "SparkSession":
    """Start Spark inside this program, or return the session that already runs.

    It finds a Java (`ensure_java`), uses *cores* threads (by default one per processor), runs
    Python functions with this interpreter, logs only errors that are not reported otherwise, and
    opens no port to the network and no web page; *config* adds settings or overrides these. With
    *quick*, for tests, the JVM starts with half of the work and stays slower: the compiler for
    long-running code is off. `archive_classes` halves the start again.

    The priority of the JVM is lowered by *niceness* (not on Windows), so that the loop stays
    responsive while Spark computes. SIGINT keeps its handler, so Ctrl-C under ``asyncio.run``
    cancels the main task; PySpark's own handler would block the loop and raise in the middle of
    whatever runs.

    Takes some seconds, and blocks: call it before the loop runs, or on a thread.
    """
    require_pyspark()
    from pyspark.sql import SparkSession

    require_int("local_session", "niceness", niceness)
    java = ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else any "python3" on the PATH
    cores = cores or os.cpu_count() or 1
    options = [f'"-Dlog4j2.configurationFile={_LOG_CONFIGURATION}"', *archive_options(java)]
    builder = SparkSession.builder.master(f"local[{cores}]").appName(name)
    for key, value in _settings(cores, options, config or {}, quick=quick).items():
        builder = builder.config(key, value)
    for logger in _QUERY_LOGGERS:
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    before = gateway_process()
    with _keep_sigint_handler(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
        session = builder.getOrCreate()
    started = gateway_process()
    if started is not None and started is not before:
        _lower_priority(started.pid, niceness)
    return session


def activate(spark: "SparkSession") -> None:
    """Make *spark* the active session of this thread, as it is of the thread that made it.

    A thread that PySpark has not seen before, such as those of ``asyncio.to_thread``, has none;
    there ``df.write.format("reactive")`` does not find the data source registered with *spark*.
    """
    if is_connect(spark) or bind_active_session(spark):
        return
    session: Any = spark
    session.createDataFrame([], "nothing int")  # which makes it the active one as a side effect


def _settings(
    cores: int, options: list[str], config: Mapping[str, str], *, quick: bool
) -> dict[str, str]:
    """Return all settings; those of the caller come last and take precedence."""
    user_options = config.get(_JAVA_OPTIONS, "")
    if quick:
        options = [*options, *_quick_options(user_options)]
    settings = {**_DEFAULTS, "spark.sql.shuffle.partitions": str(cores), **config}
    return {**settings, _JAVA_OPTIONS: " ".join([*options, user_options]).strip()}


def _quick_options(user_options: str) -> list[str]:
    """Return options for a quick start; a JVM refuses two collectors, so the user's one wins."""
    has_collector = re.search(r"-XX:\+Use\w+GC\b", user_options)
    return ["-XX:TieredStopAtLevel=1", *([] if has_collector else ["-XX:+UseSerialGC"])]


def _lower_priority(pid: int, niceness: int) -> None:
    """Lower the priority of all threads of a process; threads that they start inherit it."""
    if sys.platform == "win32":
        return
    # Linux has a priority for each thread, and takes the number of a process for its first one.
    threads = Path(f"/proc/{pid}/task")
    lower = os.getpriority(os.PRIO_PROCESS, 0) + niceness
    for _ in range(2):  # a thread that was not lowered yet may have started another one
        for each in [*threads.iterdir()] if threads.exists() else [Path(str(pid))]:
            with suppress(OSError):  # it has ended, or was lowered further
                os.setpriority(os.PRIO_PROCESS, int(each.name), lower)


@contextmanager
def _keep_sigint_handler() -> Generator[None, None, None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers, so PySpark does not either
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
