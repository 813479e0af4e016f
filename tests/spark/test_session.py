"""local_session: its settings, and the SIGINT handler."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reactive_aio.errors import MissingExtra
from reactive_aio.spark import archive_classes, local_session, session
from reactive_aio.spark._internals import gateway_process
from reactive_aio.spark.errors import require_pyspark
from reactive_aio.spark.session import _settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_the_sigint_handler_is_kept(spark: "SparkSession") -> None:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.spark
def test_settings_are_added_to_the_defaults(spark: "SparkSession") -> None:
    conf = spark.sparkContext.getConf()
    assert conf.get("spark.ui.enabled") == "false"
    assert conf.get("spark.driver.bindAddress") == "127.0.0.1"
    options = conf.get("spark.driver.extraJavaOptions") or ""
    assert "quiet.log4j2.properties" in options
    assert "-XX:+UseSerialGC" in options, "quick, as in these tests"


THEIRS = "spark.driver.extraJavaOptions"


def test_settings_of_the_caller_take_precedence() -> None:
    config = {THEIRS: "-XX:TieredStopAtLevel=4", "spark.ui.enabled": "true", "x": "y"}
    settings = _settings(3, ["-Dours"], config, quick=True)
    assert settings[THEIRS] == (
        "-Dours -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:TieredStopAtLevel=4"
    )
    assert settings["spark.ui.enabled"] == "true"
    assert settings["x"] == "y"
    assert settings["spark.sql.shuffle.partitions"] == "3"


def test_a_collector_of_the_caller_replaces_ours() -> None:
    """A JVM does not start with two."""
    settings = _settings(1, [], {THEIRS: "-XX:+UseZGC"}, quick=True)
    assert settings[THEIRS] == "-XX:TieredStopAtLevel=1 -XX:+UseZGC"


def test_the_jvm_is_not_slowed_down_by_default() -> None:
    assert _settings(1, ["-Dours"], {}, quick=False)[THEIRS] == "-Dours"


@pytest.mark.spark
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such priorities")
def test_the_priority_of_the_jvm_is_lowered(spark: "SparkSession", niceness: int) -> None:
    """All of its threads, and those that a job starts now."""
    assert spark.range(9).count() == 9
    process = gateway_process()
    assert process is not None
    threads = Path(f"/proc/{process.pid}/task")
    found = list[int]()
    for each in [*threads.iterdir()] if threads.exists() else [Path(str(process.pid))]:
        with suppress(ProcessLookupError):  # the thread has ended
            found.append(os.getpriority(os.PRIO_PROCESS, int(each.name)))
    assert {*found} == {os.getpriority(os.PRIO_PROCESS, 0) + niceness}


def test_the_priority_is_lowered_by_default() -> None:
    assert signature(local_session).parameters["niceness"].default > 0


@pytest.mark.parametrize("niceness", [-1, True, 2.5])
def test_an_invalid_niceness_is_refused(niceness: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=r"local_session: niceness must be"):
        local_session(niceness=niceness)


@pytest.mark.spark
def test_a_running_session_is_returned(spark: "SparkSession") -> None:
    assert local_session() is spark


def test_a_jvm_that_dies_at_this_moment_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sockets are closed a little before it has ended."""
    code = "import sys; sys.stdin.read()"
    calls = list[str]()
    with subprocess.Popen([sys.executable, "-S", "-c", code], stdin=subprocess.PIPE) as process:
        monkeypatch.setattr(session, "gateway_process", lambda: process)
        monkeypatch.setattr(session, "forget_dead_jvm", lambda: calls.append("forgotten"))

        class Builder:
            def getOrCreate(self) -> str:
                calls.append("asked")
                if len(calls) == 1:
                    process.kill()
                    raise ConnectionRefusedError
                return "a session"

        made: object = session._made_by(Builder())
        assert made == "a session"
    assert calls == ["asked", "forgotten", "asked"]


@pytest.mark.spark
def test_it_may_be_called_on_any_thread(spark: "SparkSession") -> None:
    found = list[object]()
    thread = threading.Thread(target=lambda: found.append(local_session()))
    thread.start()
    thread.join()
    assert found == [spark]


def test_without_pyspark_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyspark.sql", None)
    with pytest.raises(MissingExtra, match=r"reactive-aio\[spark\]"):
        require_pyspark()


@pytest.mark.parametrize("function", [local_session, archive_classes])
def test_a_pyspark_that_only_connects_starts_no_jvm(
    monkeypatch: pytest.MonkeyPatch, function: Any
) -> None:
    """The package pyspark-client has no SparkContext."""
    import pyspark

    monkeypatch.delattr(pyspark, "SparkContext")
    with pytest.raises(MissingExtra, match=rf"{function.__name__}\(\) needs the extra") as raised:
        function()
    assert "SparkSession.builder.remote" in raised.value.__notes__[0]
