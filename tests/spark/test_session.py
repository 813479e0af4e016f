"""local_session: quiet, and Ctrl-C keeps its meaning."""

import signal
import threading
from typing import TYPE_CHECKING

import pytest

from reactive_aio.errors import MissingExtra
from reactive_aio.spark import local_session
from reactive_aio.spark.failures import require_pyspark
from reactive_aio.spark.session import _settings

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
