"""What goes wrong in Spark, in words that a caller can act on.

At run time PySpark raises one type for everything: ``Py4JJavaError``, "An error occurred while
calling o57.getResult". What happened stands somewhere in the Java exception's chain of causes;
`explained` finds it and makes PySpark's own, public exception of it.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from subprocess import TimeoutExpired
from time import sleep
from typing import TYPE_CHECKING, Any, Final, cast

from ..errors import MissingExtra, ReactiveError

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame

__all__ = (
    "SparkSessionLost",
    "UnsupportedDataFrame",
    "check",
    "explained",
    "is_connect",
    "require_pyspark",
    "telling",
)

_EXIT_SECONDS: Final = 1.0
_REMEDY: Final = (
    "Nothing can be read from it any more: make a new session with SparkSession.builder, build the "
    "DataFrame on it, and subscribe to a new from_dataframe(). Rows already delivered are valid, "
    "but they are not all there are."
)


_STOPPED: Final = "The Spark session of this DataFrame has been stopped (SparkSession.stop())."
_GIVEN_UP: Final = (
    "The Spark Connect server has given up what it computed for this subscription, as it does "
    "when nobody has fetched from it for some minutes "
    "(spark.connect.execute.manager.detachedTimeout)"
)
_READ_AGAIN: Final = (
    "Rows already delivered are valid, but they are not all there are: subscribe again, and do not "
    "pause for so long."
)


class SparkSessionLost(ReactiveError, ConnectionError):
    """The Spark session under a flow was stopped, or its JVM is gone; the message says which."""


class UnsupportedDataFrame(ReactiveError, TypeError):
    """A DataFrame whose rows cannot be read under demand; the message says what to do instead."""


def require_pyspark() -> None:
    """Raise an error that names the extra, unless PySpark can be imported."""
    try:
        import_module("pyspark.sql")
    except ImportError as error:
        raise MissingExtra("reactive_aio.spark", "spark") from error


def check(df: object) -> None:
    """Raise unless *df* is a DataFrame whose rows can be read under demand."""
    require_pyspark()
    from pyspark.sql import DataFrame

    if not isinstance(df, DataFrame):
        kind = type(df).__name__
        raise UnsupportedDataFrame(
            f"from_dataframe() needs a pyspark.sql.DataFrame, got {kind!r}. For other iterables "
            "use from_iterable(), or from_thread() if they block."
        )
    with telling(df):
        streaming = df.isStreaming
    if streaming:
        raise UnsupportedDataFrame(
            "from_dataframe() cannot read a streaming DataFrame: it has no end, so it has no "
            "rows to iterate over. from_stream(df, checkpoint=…) reads it, micro-batch by "
            "micro-batch."
        )


def is_connect(df: object) -> bool:
    """Whether *df* is computed by a server of Spark Connect, and not by a JVM of this process."""
    return type(df).__module__.startswith("pyspark.sql.connect.")


@contextmanager
def telling(df: "DataFrame") -> Generator[None, None, None]:
    """Let what is raised inside say what happened. Then, and only then, it asks the JVM."""
    try:
        yield
    except Exception as error:
        explain = explained_remote if is_connect(df) else explained
        reason = explain(error, df)
        if reason is error:
            raise
        raise reason from error


def explained(error: Exception, df: "DataFrame") -> Exception:
    """Return what *error* means, or *error* itself if it speaks for itself."""
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    broken = isinstance(error, (EOFError, ConnectionError)) or "Network" in type(error).__name__
    lost = _lost(df, wait=_EXIT_SECONDS if broken else 0)
    if lost is not None:
        return SparkSessionLost(f"{lost} {_REMEDY}")
    with suppress(Exception):  # the JVM may die while it is asked about this
        if isinstance(error, Py4JJavaError):
            return _from_java(error)
        if isinstance(error, PySparkException):
            return _plain(error)
    if broken or isinstance(error, Py4JError):
        return SparkSessionLost(f"The connection to Spark's JVM broke: {error}. {_REMEDY}")
    return error


def _lost(df: "DataFrame", wait: float) -> str | None:
    """Say how the session was lost, or None if it lives."""
    context: Any = df.sparkSession.sparkContext
    process = getattr(getattr(context, "_gateway", None), "proc", None)
    if process is not None and _has_ended(process, wait):
        return (
            f"The JVM of the Spark session has died (process {process.pid}, exit status "
            f"{process.returncode}); it may have been killed, or have run out of memory: see "
            "the log, and spark.driver.memory."
        )
    if context._jsc is None or _is_stopped(context):
        return _STOPPED
    return None


def _has_ended(process: Any, wait: float) -> bool:
    """Its sockets close a little before it has ended."""
    with suppress(TimeoutExpired):
        process.wait(timeout=wait)
    return process.poll() is not None


def _is_stopped(context: Any) -> bool:
    try:
        return bool(context._jsc.sc().isStopped())
    except Exception:
        return False  # not known; the error at hand says more


# A session that is being stopped cancels its operations; the error may not even say so.
_CANCELED: Final = ("OPERATION_CANCELED", "")
_WHILE_IT_STOPS: Final = (0.0, 0.1, 0.3, 0.6)
"""Seconds before each time that the server is asked for the session."""
_CLOSED: Final = "closed"
"""Its channel is, which a session that is just being stopped does not say of itself yet."""


def explained_remote(error: Exception, df: "DataFrame") -> Exception:
    """The same for a server of Spark Connect, whose errors have PySpark's types already."""
    session: Any = df.sparkSession
    condition = _condition(error)
    status = getattr(getattr(error, "getGrpcStatusCode", lambda: None)(), "name", "")
    if condition in _CANCELED and status != "UNAVAILABLE":
        # With all others of the session? A server cancels them, and forgets the session then.
        waits = _WHILE_IT_STOPS if condition else (0.0,)
        condition = _soon_lost(session, waits) or condition
    if session.is_stopped or condition == _CLOSED:
        return SparkSessionLost(f"{_STOPPED} {_REMEDY}")
    words = str(error).partition("\n\nJVM stacktrace")[0]
    if condition.startswith("INVALID_HANDLE.SESSION"):
        return SparkSessionLost(f"The Spark Connect session has been stopped: {words} {_REMEDY}")
    if condition.startswith("INVALID_HANDLE.OPERATION") or condition == "RESPONSE_ALREADY_RECEIVED":
        return SparkSessionLost(f"{_GIVEN_UP}: {words} {_READ_AGAIN}")
    if status == "UNAVAILABLE":
        return SparkSessionLost(f"The Spark Connect server is not to be reached: {words} {_REMEDY}")
    return error


def _condition(error: Exception) -> str:
    return getattr(error, "getCondition", lambda: None)() or ""


def _soon_lost(session: Any, waits: tuple[float, ...]) -> str:
    """Ask for the session until it is lost; return what is said of it then, if ever."""
    for wait in waits:
        sleep(wait)
        if lost := _session_lost(session):
            return lost
    return ""


def _session_lost(session: Any) -> str:
    """Ask the server for the session; return what it says if there is none."""
    try:
        session.conf.get("spark.sql.session.timeZone")
    except Exception as error:
        found, words = _condition(error), str(error).lower()
        # So says gRPC: "on closed channel", or "Channel closed" when it is just being done.
        if isinstance(error, ValueError) and "channel" in words and "closed" in words:
            return _CLOSED
        return found if found.startswith("INVALID_HANDLE.SESSION") else ""
    return ""


def _from_java(error: Any) -> Exception:
    """The first exception in the chain of causes that PySpark has a type for."""
    from pyspark.errors import UnknownException
    from pyspark.errors.exceptions.captured import convert_exception

    top = convert_exception(error.java_exception)
    typed = (each for each in _causes(top) if not isinstance(each, UnknownException))
    return _plain(next(typed, top))


def _causes(error: Any) -> "Iterator[PySparkException]":
    while error is not None:
        yield error
        error = getattr(error, "_cause", None)


def _plain(error: "PySparkException") -> "PySparkException":
    """The same exception without a hand in the JVM: it can be printed on the loop, and later.

    PySpark's captured exceptions ask the JVM, and block, whenever they are printed. Their public
    base classes, which are what callers name in ``except``, hold plain text.
    """
    from pyspark.errors.exceptions import base

    text = getattr(error, "_desc", None)
    if text is None:
        return error
    kinds = (kind for kind in type(error).__mro__ if kind.__module__ == base.__name__)
    condition = error.getCondition()
    parameters = error.getMessageParameters()
    if condition is not None:
        text = cast("str", text).removeprefix(f"[{condition}] ")
    plain = cast("type[PySparkException]", next(kinds))
    return plain(message=text, errorClass=condition, messageParameters=parameters)
