"""The figures of `map_flow` and of the bridge, where two workers are hosts of their own.

    sudo python -m benchmarks.spark.hosts [--rounds N] [--scale X]

A host is a network namespace of this machine (Linux, root, iproute2): an executor's rows cross a
bridge of the kernel, and not the loopback interface. They share the processors of the machine. The
namespaces and the bridge are removed at the end.
"""

import argparse
import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Final

from reactive_aio.spark import find_java, local_session

from ..runner.cases import Effort
from ..runner.catalog import Entry
from ..runner.results import Results, Run
from ..runner.tables import cases
from . import map_flow, sizes, tables

ROOT: Final = Path(__file__).parents[2]
BRIDGE: Final = "flows0"
NETWORK: Final = "10.231.7"
DRIVER: Final = f"{NETWORK}.1"
WORKERS: Final = 2
SECONDS: Final = 60.0
"""For a process to start."""


def ip(*arguments: str) -> None:
    ran = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(f"ip {' '.join(arguments)}: {ran.stderr.strip()}")


@contextmanager
def hosts(count: int) -> Generator[list[tuple[str, str]]]:
    """Make *count* namespaces that are connected by a bridge; yield their names and addresses."""
    if sys.platform != "linux" or os.geteuid() or shutil.which("ip") is None:
        raise SystemExit("network namespaces need Linux, root, and the command `ip` (iproute2)")
    with ExitStack() as stack:
        ip("link", "add", BRIDGE, "type", "bridge")
        stack.callback(ip, "link", "delete", BRIDGE)
        ip("address", "add", f"{DRIVER}/24", "dev", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        made = [(f"flows-{i}", f"{NETWORK}.{i + 2}") for i in range(count)]
        for number, (name, address) in enumerate(made):
            outside = f"flows0-{number}"
            ip("netns", "add", name)
            stack.callback(ip, "netns", "delete", name)
            ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", name)
            stack.callback(ip, "link", "delete", outside)  # a namespace lives on with its processes
            ip("link", "set", outside, "master", BRIDGE, "up")
            ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield made


@contextmanager
def cluster(folder: Path, workers: list[tuple[str, str]]) -> Generator[str]:
    """Run a master on the bridge, and a worker with one core on each host; yield its address."""
    with ExitStack() as stack:
        stack.enter_context(started(folder / "master.log", "master", DRIVER, "--port", "7077"))
        master = logged(folder / "master.log", r"Starting Spark master at (spark://\S+)")
        for name, address in workers:
            log, work = folder / f"{name}.log", str(folder / name)
            options = (master, "--cores", "1", "--memory", "1g", "--work-dir", work)
            command = started(log, "worker", address, *options, namespace=name)
            stack.enter_context(command)
            logged(log, "Successfully registered with (master)")
        yield master


@contextmanager
def started(
    log: Path, role: str, address: str, *options: str, namespace: str = ""
) -> Generator[None]:
    """Run a process of Spark, which is killed at the end with all that it has started."""
    import pyspark

    program = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    enter = ["ip", "netns", "exec", namespace] if namespace else []
    arguments = [f"org.apache.spark.deploy.{role}.{role.title()}", "--host", address, *options]
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java().home),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOCAL_IP": address,
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*enter, program, *arguments, "--webui-port", "0"],
            env=environment, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def logged(log: Path, says: str) -> str:
    """Wait until *log* matches *says*; return the group of the match."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        if found := re.search(says, log.read_text(errors="replace")):
            return found.group(1)
        time.sleep(0.05)
    raise SystemExit(f"Spark does not start:\n{log.read_text(errors='replace')}")


def measure(master: str, effort: Effort) -> None:
    """Measure the questions in a session of *master*, and print them."""
    os.environ["SPARK_LOCAL_IP"] = DRIVER
    config = {
        **tables.OPTIONS,
        "spark.master": master,
        "spark.driver.host": DRIVER,
        "spark.driver.bindAddress": DRIVER,
        "spark.executor.memory": "768m",
        "spark.sql.shuffle.partitions": "2",
        "spark.executorEnv.PYTHONPATH": str(ROOT),
    }
    spark = local_session("hosts", config=config)
    tables.measure_in(spark)
    try:
        run, results = Run.now(loop="asyncio", rounds=effort.rounds, scale=effort.scale), Results()
        for module, question in (
            ("map_flow", map_flow.synchronous),
            ("map_flow", map_flow.awaited),
            ("sizes", sizes.two_millions),
        ):
            rows = asyncio.run(question.measure(effort))
            entry = Entry("spark", module, "hosts", question)
            print(cases(results.add(entry, run, rows)), flush=True)
    finally:
        spark.stop()


def stop(number: int, frame: FrameType | None) -> None:
    """End as after Ctrl-C, so that the hosts are removed."""
    sys.exit(f"stopped by {signal.Signals(number).name}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark.hosts", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of rows")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, stop)
    with (
        TemporaryDirectory(prefix="hosts-") as folder,
        hosts(WORKERS) as workers,
        cluster(Path(folder), workers) as master,
    ):
        measure(master, Effort(options.rounds, options.scale))


if __name__ == "__main__":
    main()
