"""Errors of Spark, translated into exceptions that a caller can act on.

At run time PySpark raises one type for everything: ``Py4JJavaError``, "An error occurred while
calling o57.getResult". What happened is in the chain of causes of the Java exception; `explained`
finds it and raises PySpark's own, public exception for it.
"""

import re
from collections.abc import Generator
from contextlib import contextmanager, suppress
from importlib import import_module
from os import environ, fsdecode
from subprocess import TimeoutExpired
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final

from .._core.arguments import require_int
from .._core.compiler.inline import describe
from ..errors import MissingExtra, ReactiveError
from ..stage import Fluent
from ._internals import (
    condition_of,
    dead_local_server,
    forget_dead_jvm,
    gateway_process,
    is_context_closed,
    is_context_stopped,
    out_of_memory,
    plain_error,
    typed_error,
)
from .rows import RowKind

if TYPE_CHECKING:
    from os import PathLike
    from subprocess import Popen

    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

LARGEST_INT: Final = 2**31 - 1  # of Java
_ANSWER: Final = ". Trace:\n"
"""A part of the text of Py4J's error for what the JVM has refused, as a call without a method."""
_EXIT_SECONDS: Final = 1.0
_SHUTDOWN_SECONDS: Final = 10.0  # a JVM without memory needs seconds for its shutdown hooks
_POLL_SECONDS: Final = 0.02
_OUT_OF_MEMORY_STATUSES: Final = (52, 3)  # SparkExitCode.OOM, and -XX:+ExitOnOutOfMemoryError
_LOST: Final = (
    "Nothing can be read from it any more, nor written with it: {remedy}. Rows already delivered "
    "are valid, but they are not all of the rows."
)
_AGAIN: Final = (
    "build the DataFrame on it, and subscribe to a new from_dataframe(), or repeat the call"
)
_REMEDY: Final = _LOST.format(
    remedy="make a new session in this program, with local_session() or SparkSession.builder, "
    f"{_AGAIN}"
)
_REMEDY_SUBMITTED: Final = _LOST.format(
    remedy="spark-submit started that JVM and then this program, so start the program again"
)
_REMEDY_CONNECT: Final = _LOST.format(
    remedy="call its stop(), make a new session with SparkSession.builder.remote(...), " + _AGAIN
)
_RESULT_SIZE: Final = "spark.driver.maxResultSize"
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""A variable that spark-submit sets for the program that it starts."""
_CANCELLED: Final = re.compile(r"OPERATION_CANCELED|SPARK_JOB_CANCELLED|\bJob \d+ cancelled\b")
_STOPPED: Final = "The Spark session has been stopped (SparkSession.stop())."
_OUT_OF_MEMORY: Final = (
    "The JVM of the Spark session ran out of memory{detail}. A whole partition waits in it while "
    "its rows are read, and a commit while it is written: make the partitions smaller "
    "(df.repartition(n), spark.sql.files.maxPartitionBytes), window= or batch_bytes= smaller, or "
    "spark.driver.memory larger."
)
_ABANDONED: Final = (
    "The Spark Connect server has abandoned the result that it computed for this subscription, as "
    "it does when a client has not fetched from it for some minutes "
    "(spark.connect.execute.manager.detachedTimeout)"
)
_READ_AGAIN: Final = (
    "Rows already delivered are valid, but they are not all of the rows: subscribe again, and do "
    "not pause for so long."
)


_NEEDED: Final = {  # what is needed, the remedy without a DataFrame, and that for the other kind
    False: (
        "a pyspark.sql.DataFrame",
        " For other iterables use from_iterable(), or from_thread() if they block.",
        "cannot read a streaming DataFrame: it has no end, so it has no rows to iterate over. "
        "from_stream(df, checkpoint=…) reads it, micro-batch by micro-batch.",
    ),
    True: (
        "a streaming DataFrame",
        "",
        "needs a streaming DataFrame, made with spark.readStream; this one has an end: "
        "from_dataframe(df) reads it.",
    ),
}


class SparkSessionLost(ReactiveError, ConnectionError):
    """The Spark session of a flow was stopped, or its JVM is gone; the message says which."""


class JobCancelled(ReactiveError, RuntimeError):
    """Other code has cancelled a job of the flow, or someone has on Spark's web page."""


class PartitionTooLarge(ReactiveError, RuntimeError):
    """The rows of one partition are more than Spark's driver accepts of a job."""


class StreamStopped(ReactiveError):
    """The streaming query was stopped by other code before this subscription had ended."""

    def __init__(self, function: str) -> None:
        super().__init__(
            f"{function}: the streaming query was stopped (StreamingQuery.stop(), or another query "
            "on the same checkpoint) before this subscription had ended. Subscribe again: it "
            "continues from the checkpoint, and repeats a micro-batch that was not over."
        )


class UnsupportedDataFrame(ReactiveError, TypeError):
    """A DataFrame whose rows cannot be read under demand; the message gives an alternative."""


# -- checks of arguments --------------------------------------------------------------------------
def require_pyspark() -> None:
    """Raise an error that names the extra, unless PySpark can be imported."""
    try:
        import_module("pyspark.sql")
    except ImportError as error:
        raise MissingExtra("reactive_aio.spark", "spark") from error


def require_jvm_classes(function: str) -> None:
    """Raise unless PySpark has what starts a JVM; ``pyspark-client`` has only Spark Connect."""
    require_pyspark()
    try:
        import_module("pyspark").SparkContext  # noqa: B018
    except AttributeError as error:
        missing = MissingExtra(f"{function}()", "spark")
        missing.add_note(
            "The installed PySpark is pyspark-client, which contains no Spark: uninstall it first. "
            "Or use a server of Spark Connect, SparkSession.builder.remote('sc://…'): "
            "from_dataframe() reads its DataFrames without a Java here."
        )
        raise missing from error


def require_option(function: str, parameter: str, value: str, allowed: tuple[str, ...]) -> None:
    """Raise unless *value* is one of *allowed*."""
    if value not in allowed:
        options = ", ".join(allowed)
        raise ValueError(f"{function}: {parameter} must be one of {options}, not {value!r}.")


def require_java_int(function: str, parameter: str, value: int, *, least: int = 1) -> None:
    """*value* must be an ``int`` that Spark can take, of at least *least*."""
    require_int(function, parameter, value, least=least)
    if value > LARGEST_INT:
        raise ValueError(f"{function}: {parameter} must be at most {LARGEST_INT}, not {value}")


def require_text(function: str, parameter: str, value: object) -> None:
    """*value* must be a string that is not empty."""
    if not isinstance(value, str):
        kind = type(value).__name__
        raise TypeError(f"{function}: {parameter} must be a str, not {describe(value)} ({kind})")
    if not value:
        raise ValueError(f"{function}: {parameter} must not be empty")


def require_path(function: str, parameter: str, value: "str | PathLike[str]") -> str:
    """Return a path as text."""
    with suppress(TypeError):
        return fsdecode(value)
    kind = type(value).__name__
    raise TypeError(f"{function}: {parameter} must be a path, not {describe(value)} ({kind})")


def require_session(function: str, spark: object) -> None:
    """*spark* must be a session, of either kind."""
    require_pyspark()
    from pyspark.sql import SparkSession

    if not isinstance(spark, SparkSession) and type(spark).__name__ != SparkSession.__name__:
        raise TypeError(
            f"{function}: spark must be a SparkSession, not {describe(spark)} "
            f"({type(spark).__name__})"
        )


def require_flow(function: str, flow: object) -> None:
    """*flow* must be one."""
    if not isinstance(flow, Fluent):
        raise TypeError(
            f"{function} takes a flow, and then a session and a schema; not {describe(flow)} "
            f"({type(flow).__name__}). rx.from_iterable(...) is a flow of an iterable."
        )


def require_dataframe_type(
    function: str, df: object, needed: str = "a pyspark.sql.DataFrame", remedy: str = ""
) -> "DataFrame":
    """Return *df*; raise unless it is a DataFrame. It does not call the JVM."""
    require_pyspark()
    from pyspark.sql import DataFrame

    if not isinstance(df, DataFrame):
        raise UnsupportedDataFrame(
            f"{function}() needs {needed}, got {describe(df)} ({type(df).__name__}).{remedy}"
        )
    return df


def require_dataframe(function: str, df: object, *, is_streaming: bool) -> None:
    """Raise unless *df* is a DataFrame that *function* can read. Calls the JVM."""
    needed, remedy, other = _NEEDED[is_streaming]
    found = require_dataframe_type(function, df, needed, remedy)
    with explained(found):
        is_fit = found.isStreaming == is_streaming
    if not is_fit:
        raise UnsupportedDataFrame(f"{function}() {other}")


def require_unique_names(schema: "StructType", kind: RowKind, function: str) -> None:
    """Raise if rows are to be dicts and two columns have the same name."""
    names = schema.names
    if kind == "dict" and len(set(names)) < len(names):
        twice = next(name for position, name in enumerate(names) if name in names[:position])
        raise UnsupportedDataFrame(
            f"{function}(rows='dict'): there are two columns named {twice!r}, and a dict has "
            "room for one. Rename one of them, or use rows='tuple'."
        )


def is_connect(df: object) -> bool:
    """Whether *df* is computed by a Spark Connect server and not by a JVM of this process."""
    return type(df).__module__.startswith("pyspark.sql.connect.")


# -- translation ----------------------------------------------------------------------------------
@contextmanager
def explained(of: "DataFrame | SparkSession") -> Generator[None, None, None]:
    """Replace an exception raised inside by the one that explains it. Only then asks the JVM.

    *of* is what was computed, or its session.
    """
    try:
        yield
    except SparkSessionLost:
        raise  # it was explained inside
    except Exception as error:
        session: Any = getattr(of, "sparkSession", of)
        explain = _explain_connect if is_connect(of) else _explain_classic
        reason = explain(error, session)
        if reason is error:
            raise
        raise reason from error


def _explain_classic(error: Exception, session: Any) -> Exception:
    """Return the exception that explains *error*, or *error* itself if it is clear already."""
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    is_broken = isinstance(error, (EOFError, ConnectionError)) or (
        isinstance(error, Py4JError)
        and not isinstance(error, Py4JJavaError)
        and _ANSWER not in str(error)
    )
    loss = _loss_of_session(session, wait=_EXIT_SECONDS if is_broken else 0)
    if loss is not None:
        return _lost(loss)
    with suppress(Exception):  # the JVM may die while it is asked about this
        if isinstance(error, Py4JJavaError):
            if (cause := out_of_memory(error)) is not None:
                return _lost(_OUT_OF_MEMORY.format(detail=f": {cause}"))
            return _or_told(typed_error(error))
        if isinstance(error, PySparkException):
            return _or_told(plain_error(error))
    return _lost(f"The connection to Spark's JVM broke: {error}.") if is_broken else error


def _or_told(error: Exception) -> Exception:
    """Return *error*, or the error that tells of a job that was cancelled, or too large."""
    lines = str(error).splitlines()  # of which others may show a stack
    for line in (each.rstrip(". ") for each in lines):
        if _RESULT_SIZE in line:
            return PartitionTooLarge(
                f"Spark has refused the rows of a job: {line}. A partition is read as a whole: "
                "make the partitions smaller (df.repartition(n), "
                "spark.sql.files.maxPartitionBytes), select fewer columns, or make the session "
                f"with a larger {_RESULT_SIZE} (0 means no limit), and as much spark.driver.memory."
            )
        if _CANCELLED.search(line) is not None:
            return JobCancelled(
                f"Other code has cancelled a job of this flow: {line}. It may have called "
                "cancelJobGroup(), cancelAllJobs(), interruptAll() or the like, or somebody has "
                "stopped the job on Spark's web page. Rows already delivered are valid, but they "
                "are not all of the rows: subscribe again, or repeat the call."
            )
    return error


def _lost(how: str) -> SparkSessionLost:
    """Return the error with the remedy that works: once it is raised, a new session can be made."""
    forget_dead_jvm()
    return SparkSessionLost(f"{how} {_REMEDY_SUBMITTED if _SUBMITTED in environ else _REMEDY}")


def _loss_of_session(session: Any, wait: float) -> str | None:
    """Return how the session was lost, or None if it is alive."""
    context = session.sparkContext
    process = gateway_process(context)
    if process is not None:
        with suppress(TimeoutExpired):  # its sockets close a little earlier than it exits
            process.wait(timeout=wait)
        if process.poll() is not None:
            return _death(process)
    with suppress(Exception):  # the JVM does not answer; the error at hand says more
        if is_context_stopped(context):
            if process is not None and _is_exiting(process, context):
                return _death(process)
            return _STOPPED
    return None


def _is_exiting(process: "Popen[bytes]", context: "SparkContext") -> bool:
    """Whether the context was stopped because its JVM exits: wait for that, or for stop() here."""
    until = monotonic() + _SHUTDOWN_SECONDS
    while not is_context_closed(context) and monotonic() < until:
        if process.poll() is not None:
            return True
        sleep(_POLL_SECONDS)
    return process.poll() is not None


def _death(process: "Popen[bytes]") -> str:
    detail = f"process {process.pid}, exit status {process.returncode}"
    if process.returncode in _OUT_OF_MEMORY_STATUSES:
        return _OUT_OF_MEMORY.format(detail=f" ({detail})")
    return (
        f"The JVM of the Spark session has died ({detail}); it may have been killed, for example "
        "by a system without memory: see the log, and spark.driver.memory."
    )


# -- Spark Connect: PySpark's errors are typed already --------------------------------------------
# A session that is being stopped cancels its operations; the error may not even say so.
_CANCELED: Final = ("OPERATION_CANCELED", "")
_WHILE_IT_STOPS: Final = (0.0, 0.1, 0.3, 0.6)
"""Seconds before each attempt to ask the server for the session."""
_RECEIVED: Final = "RESPONSE_ALREADY_RECEIVED"
_CHANNEL_CLOSED: Final = "closed"
"""The state of a session whose channel is closed; `is_stopped` may not be set yet."""


def _explain_connect(error: Exception, session: Any) -> Exception:
    if (process := dead_local_server()) is not None:
        session.release_session_on_close = False  # which would try to reach it for ten minutes
        session.stop()
        return _lost(_death(process))
    condition = _condition(error)
    status = getattr(getattr(error, "getGrpcStatusCode", lambda: None)(), "name", "")
    if condition in _CANCELED and status != "UNAVAILABLE":
        # A server that stops a session cancels its operations first, and then forgets it.
        for delay in _WHILE_IT_STOPS if condition else (0.0,):
            sleep(delay)
            if loss := _loss_of_connect_session(session):
                condition = loss
                break
    text = str(error).partition("\n\nJVM stacktrace")[0]
    if session.is_stopped or condition == _CHANNEL_CLOSED:
        how = _STOPPED
    elif condition.startswith("INVALID_HANDLE.SESSION"):
        how = f"The Spark Connect session has been stopped: {text}"
    elif status == "UNAVAILABLE":
        how = f"The Spark Connect server cannot be reached: {text}"
    elif condition.startswith("INVALID_HANDLE.OPERATION") or condition == _RECEIVED:
        return SparkSessionLost(f"{_ABANDONED}: {text} {_READ_AGAIN}")
    else:
        return _or_told(error)
    session.release_session_on_close = False  # its stop() would try to reach the server as well
    return SparkSessionLost(f"{how} {_REMEDY_CONNECT}")


def _condition(error: Exception) -> str:
    return condition_of(error) or ""


def _loss_of_connect_session(session: Any) -> str:
    """Ask the server for the session; return the condition of its refusal, if it refuses."""
    try:
        session.conf.get("spark.sql.session.timeZone")
    except Exception as error:
        condition, text = _condition(error), str(error).lower()
        # gRPC says "on closed channel", or "Channel closed" while the channel is being closed.
        if isinstance(error, ValueError) and "channel" in text and "closed" in text:
            return _CHANNEL_CLOSED
        return condition if condition.startswith("INVALID_HANDLE.SESSION") else ""
    return ""
