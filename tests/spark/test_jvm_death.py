"""The end of the JVM has the right name: out of memory, stopped, or killed."""

import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from reactive_aio.spark import SparkSessionLost, errors
from reactive_aio.spark._internals import is_context_closed, out_of_memory

DF: Any = SimpleNamespace(sparkSession=SimpleNamespace(sparkContext=object()))


def message() -> str:
    """Return what a flow fails with after an error of its job."""
    with pytest.raises(SparkSessionLost) as raised, errors.explained(DF):
        raise RuntimeError("Job 7 cancelled because SparkContext was shut down")
    return str(raised.value)


def always(_: object) -> bool:
    return True


def nothing(_: object) -> None:
    return None


def never(_: object) -> bool:
    return False


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The context in the JVM was stopped, by whatever."""
    monkeypatch.setattr(errors, "is_context_stopped", always)
    monkeypatch.setattr(errors, "is_context_closed", never)
    monkeypatch.setattr(errors, "_POLL_SECONDS", 0.001)


@pytest.fixture
def jvm(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A process that exits with a status, when its input is closed."""
    code = f"import sys; sys.stdin.read(); sys.exit({request.param})"
    command = [sys.executable, "-S", "-c", code]
    process: subprocess.Popen[bytes]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:

        def find(_: object) -> Any:
            return process

        monkeypatch.setattr(errors, "gateway_process", find)
        yield process


@pytest.mark.usefixtures("stopped")
@pytest.mark.parametrize(
    ("jvm", "words"),
    [
        (52, r"ran out of memory \(process \d+, exit status 52\).*partitions smaller.*driver.mem"),
        (3, r"ran out of memory \(process \d+, exit status 3\).*batch_bytes= smaller"),
        (1, r"has died \(process \d+, exit status 1\)"),
    ],
    indirect=["jvm"],
)
def test_a_jvm_that_exits_stops_its_context_first(jvm: Any, words: str) -> None:
    """Spark's shutdown hook stops it, and flows fail before the process has ended."""
    jvm.stdin.close()
    text = message()
    assert "SparkSession.stop()" not in text
    with pytest.raises(SparkSessionLost, match=words):
        raise SparkSessionLost(text)


@pytest.mark.usefixtures("stopped")
@pytest.mark.parametrize("jvm", [0], indirect=True)
def test_a_session_that_is_stopped_here_is_named(jvm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the JVM's part of ``stop()`` runs, Python does not know of it yet."""
    answers = iter([False, False, True])

    def answer(_: object) -> bool:
        return next(answers)

    monkeypatch.setattr(errors, "is_context_closed", answer)
    assert "has been stopped (SparkSession.stop())" in message()
    jvm.stdin.close()


@pytest.mark.usefixtures("stopped")
@pytest.mark.parametrize("jvm", [0], indirect=True)
def test_a_context_that_is_stopped_in_a_jvm_that_lives_is_named(
    jvm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errors, "_SHUTDOWN_SECONDS", 0.01)
    assert "has been stopped" in message()
    jvm.stdin.close()


def test_a_context_is_closed_when_another_one_can_be_made() -> None:
    """PySpark takes a context that is half stopped for the active one, and fails."""

    class Context:
        _jsc = None
        _active_spark_context: Any = None

    stopping: Any = Context()
    Context._active_spark_context = stopping
    assert not is_context_closed(stopping)
    Context._active_spark_context = None
    assert is_context_closed(stopping)


def java_exception(name: str, cause: Any = None) -> Any:
    return SimpleNamespace(
        getClass=lambda: SimpleNamespace(getName=lambda: name),
        getCause=lambda: cause,
        toString=lambda: f"{name}: words",
    )


def test_the_cause_of_an_error_is_found_in_its_chain() -> None:
    cause = java_exception("java.lang.OutOfMemoryError")
    error = SimpleNamespace(java_exception=java_exception("SparkException", cause))
    assert out_of_memory(error) == "java.lang.OutOfMemoryError: words"
    other = SimpleNamespace(java_exception=java_exception("SparkException"))
    assert out_of_memory(other) is None
    endless = java_exception("SparkException")
    endless.getCause = lambda: endless
    assert out_of_memory(SimpleNamespace(java_exception=endless)) is None


ANSWERED = "An error occurred while calling o57.limit. Trace:\npy4j.Py4JException: Method limit"


@pytest.mark.parametrize(
    ("error", "is_lost"),
    [
        (Py4JError(ANSWERED), False),
        (Py4JError("An error occurred while calling o57.limit"), True),
        (Py4JNetworkError("Answer from Java side is empty"), True),
        (TypeError("not a number"), False),
    ],
)
def test_only_a_jvm_that_does_not_answer_is_lost(
    monkeypatch: pytest.MonkeyPatch, error: Exception, is_lost: bool
) -> None:
    monkeypatch.setattr(errors, "gateway_process", nothing)
    monkeypatch.setattr(errors, "is_context_stopped", never)
    with pytest.raises(SparkSessionLost if is_lost else type(error)), errors.explained(DF):
        raise error
