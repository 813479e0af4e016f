"""A standalone Spark cluster on this machine: a master and its workers, each a process."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from reactive_aio.spark import find_java

_DEPLOY: Final = "org.apache.spark.deploy"
_QUICK: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_SECONDS: Final = 60.0  # for a process to start, on a busy machine
HERE: Final = "127.0.0.1"
_ROOT: Final = Path(__file__).parents[2]
_RUN_SECONDS: Final = 200.0


class Cluster:
    """Runs inside its ``with``; killed, with all executors, at the end."""

    def __init__(self, folder: Path, *, workers: int = 2) -> None:
        self._folder = folder
        self._count = workers
        self._stack = ExitStack()
        self.master: str = ""
        self.workers: list[int] = []
        """The process groups of the workers: each of itself and its executors."""

    def __enter__(self) -> "Cluster":
        try:
            found = self._start("master", "--host", HERE, "--port", "0", "--webui-port", "0",
                                says=r"Starting Spark master at (spark://\S+)")  # fmt: skip
            self.master = found
            for number in range(self._count):
                self._start(f"worker-{number}", self.master, "--host", HERE, "--cores", "1",
                            "--memory", "600m", "--webui-port", "0",
                            "--work-dir", str(self._folder / f"work-{number}"))  # fmt: skip
            for number in range(self._count):
                self._wait(f"worker-{number}", "Successfully registered with (master)")
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def run(self, module: str, *arguments: str) -> Any:
        """Run a program of this package on the cluster; return what it prints, read as JSON.

        It is a process of its own, since a JVM has one context. Its arguments are the address of
        the master, the process group of the first worker, and *arguments*.
        """
        command = [sys.executable, "-W", "ignore", "-m", f"{__package__}.{module}"]
        ran = subprocess.run(
            [*command, self.master, str(self.workers[0]), *arguments],
            capture_output=True, text=True, timeout=_RUN_SECONDS, check=False, cwd=_ROOT,
            env=os.environ | {"PYTHONPATH": str(_ROOT)},  # the workers import tests as well
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    def _start(self, name: str, *arguments: str, says: str | None = None) -> str:
        role = name.partition("-")[0]
        log = self._stack.enter_context((self._folder / f"{name}.log").open("wb"))
        process = subprocess.Popen(
            [str(_spark_home() / "bin" / "spark-class"), f"{_DEPLOY}.{role}.{role.title()}",
             *arguments],
            env={**os.environ, **_environment()}, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
        self._stack.callback(_end, process)
        if role == "worker":
            self.workers.append(process.pid)
        return "" if says is None else self._wait(name, says)

    def _wait(self, name: str, says: str) -> str:
        """Wait until the log of a process matches *says*; return the group of the match."""
        path, until = self._folder / f"{name}.log", time.monotonic() + _SECONDS
        while time.monotonic() < until:
            if found := re.search(says, path.read_text(errors="replace")):
                return found.group(1)
            time.sleep(0.05)
        raise TimeoutError(f"{name} does not start:\n{path.read_text(errors='replace')}")


def _spark_home() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


def _environment() -> Mapping[str, str]:
    return {
        "JAVA_HOME": str(find_java().home),
        "SPARK_DAEMON_JAVA_OPTS": _QUICK,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOCAL_IP": HERE,
        "PYSPARK_PYTHON": sys.executable,
    }


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Kill the process group, which contains the executors that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
