"""A Spark session on this machine, quiet and on a Java that was found for it."""

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
from .archive import archive_options
from .failures import require_pyspark
from .java import ensure_java

if TYPE_CHECKING:
    from subprocess import Popen

    from pyspark.sql import SparkSession

__all__ = ("local_session",)

_QUIET: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Loopback only: no look-up of the host's name, and nothing listens to the network.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Results of up to 32 MB go from a task to the driver, which is the same JVM, in one piece. From
    # 1 MB on they would go by way of the block manager, which takes a tenth longer.
    "spark.task.maxDirectResultSize": "32m",
}
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_LOGGING: Final = Path(__file__).with_name("quiet.log4j2.properties")
# They print every failed query to stderr as JSON, although it is raised as well.
_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


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
    Python functions with this very Python, logs only errors that nobody else reports, opens no
    port to the network and no web page; *config* adds settings or overrides these. With *quick*,
    for tests, the JVM starts with half of the work and stays slow: its second compiler, which makes
    code fast that runs for long, is off. `archive_classes` halves the start again.

    Where both want a processor, this program goes first: the JVM is lowered by *niceness* (not on
    Windows), so that the loop is on time while Spark computes. SIGINT keeps its meaning, so Ctrl-C
    under ``asyncio.run`` cancels the main task: PySpark would replace the handler by one that
    blocks the loop and raises in the middle of it.

    Takes some seconds, and blocks: call it before the loop runs, or on a thread.
    """
    require_pyspark()
    from pyspark.sql import SparkSession

    require_int("local_session", "niceness", niceness)
    java = ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else "python3", whichever that is
    cores = cores or os.cpu_count() or 1
    options = [f'"-Dlog4j2.configurationFile={_LOGGING}"', *archive_options(java)]
    builder = SparkSession.builder.master(f"local[{cores}]").appName(name)
    for key, value in _settings(cores, options, config or {}, quick=quick).items():
        builder = builder.config(key, value)
    for logger in _LOGGERS:
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    before = _process()
    with _interrupt_kept(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
        session = builder.getOrCreate()
    started = _process()
    if started is not None and started is not before:
        _lower(started.pid, niceness)
    return session


def _settings(
    cores: int, options: list[str], config: Mapping[str, str], *, quick: bool
) -> dict[str, str]:
    """All settings, the caller's last: they win."""
    theirs = config.get(_JAVA_OPTIONS, "")
    if quick:
        options = [*options, *_quick_options(theirs)]
    settings = {**_QUIET, "spark.sql.shuffle.partitions": str(cores), **config}
    return {**settings, _JAVA_OPTIONS: " ".join([*options, theirs]).strip()}


def _quick_options(theirs: str) -> list[str]:
    """A JVM refuses two collectors, so one of theirs leaves no room for ours."""
    collector = [] if re.search(r"-XX:\+Use\w+GC\b", theirs) else ["-XX:+UseSerialGC"]
    return ["-XX:TieredStopAtLevel=1", *collector]


def _process() -> "Popen[bytes] | None":
    """The JVM of this program, if there is one that this program has started."""
    from pyspark import SparkContext

    untyped: Any = SparkContext
    return getattr(untyped._gateway, "proc", None)


def _lower(pid: int, niceness: int) -> None:
    """Have a process go second. Its threads pass that on to those that they start."""
    if sys.platform == "win32":
        return
    # Linux has a priority for each thread, and takes the number of a process for its first one.
    threads = Path(f"/proc/{pid}/task")
    lower = os.getpriority(os.PRIO_PROCESS, 0) + niceness
    for _ in range(2):  # one may have been started by one that was not lowered yet
        for each in [*threads.iterdir()] if threads.exists() else [Path(str(pid))]:
            with suppress(OSError):  # it has ended, or was lowered further
                os.setpriority(os.PRIO_PROCESS, int(each.name), lower)


@contextmanager
def _interrupt_kept() -> Generator[None, None, None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers, so PySpark does not either
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
