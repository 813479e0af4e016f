"""local_session: quiet, and Ctrl-C keeps its meaning."""

import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reactive_aio.errors import MissingExtra
from reactive_aio.spark import local_session
from reactive_aio.spark.failures import require_pyspark
from reactive_aio.spark.session import _process, _settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_the_handler_of_ctrl_c_is_kept(spark: "SparkSession") -> None:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.spark
def test_settings_are_added_to_the_quiet_ones(spark: "SparkSession") -> None:
    conf = spark.sparkContext.getConf()
    assert conf.get("spark.ui.enabled") == "false"
    assert conf.get("spark.driver.bindAddress") == "127.0.0.1"
    options = conf.get("spark.driver.extraJavaOptions") or ""
    assert "quiet.log4j2.properties" in options
    assert "-XX:+UseSerialGC" in options, "quick, as the tests are"


THEIRS = "spark.driver.extraJavaOptions"


def test_what_the_caller_sets_comes_last_and_so_it_wins() -> None:
    config = {THEIRS: "-XX:TieredStopAtLevel=4", "spark.ui.enabled": "true", "x": "y"}
    settings = _settings(3, ["-Dours"], config, quick=True)
    assert settings[THEIRS] == (
        "-Dours -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:TieredStopAtLevel=4"
    )
    assert settings["spark.ui.enabled"] == "true"
    assert settings["x"] == "y"
    assert settings["spark.sql.shuffle.partitions"] == "3"


def test_a_jvm_gets_one_collector() -> None:
    """It would not start with two."""
    settings = _settings(1, [], {THEIRS: "-XX:+UseZGC"}, quick=True)
    assert settings[THEIRS] == "-XX:TieredStopAtLevel=1 -XX:+UseZGC"


def test_unless_asked_for_the_jvm_is_not_slowed_down() -> None:
    assert _settings(1, ["-Dours"], {}, quick=False)[THEIRS] == "-Dours"


@pytest.mark.spark
@pytest.mark.skipif(sys.platform == "win32", reason="it has no priorities of this kind")
def test_the_jvm_goes_second(spark: "SparkSession") -> None:
    """All of its threads, and those that it starts now: a job has some."""
    assert spark.range(9).count() == 9
    process = _process()
    assert process is not None
    threads = Path(f"/proc/{process.pid}/task")
    found = list[int]()
    for each in [*threads.iterdir()] if threads.exists() else [Path(str(process.pid))]:
        with suppress(ProcessLookupError):  # a thread that has just ended
            found.append(os.getpriority(os.PRIO_PROCESS, int(each.name)))
    assert {*found} == {os.getpriority(os.PRIO_PROCESS, 0) + 5}


@pytest.mark.parametrize("niceness", [-1, True, 2.5])
def test_what_is_no_niceness_is_refused(niceness: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=r"local_session: niceness must be"):
        local_session(niceness=niceness)


@pytest.mark.spark
def test_a_session_that_runs_is_returned(spark: "SparkSession") -> None:
    assert local_session() is spark


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
