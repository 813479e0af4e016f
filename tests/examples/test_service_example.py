"""examples/service: its own tests pass, and the process stops without losing what it accepted."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[2]
SERVICE = ROOT / "examples" / "service"
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{SERVICE}"}
ADDRESS = re.compile(r"Uvicorn running on (http://\S+)")

pytestmark = pytest.mark.slow


def test_its_own_tests_pass(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist",
         "-c", str(SERVICE / "pyproject.toml"), "--basetemp", str(tmp_path / "temp"), str(SERVICE)],
        env=ENVIRONMENT,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert " passed" in ended.stdout


class Rooms(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"the kitchen")

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def rooms() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Rooms) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_sigterm_stores_what_was_accepted(rooms: str, tmp_path: Path) -> None:
    command = ["-m", "station", "--host", "127.0.0.1", "--port", "0", "--rooms", rooms]
    with subprocess.Popen(
        [sys.executable, *command, "--database", str(tmp_path / "readings.db")],
        env=ENVIRONMENT,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        found = next(found for line in process.stderr if (found := ADDRESS.search(line)))
        with (
            httpx.Client(base_url=found[1], timeout=60, trust_env=False) as client,
            client.stream("GET", "/live") as live,  # it never ends by itself
        ):
            for sensor in range(20):
                reading = {"sensor": sensor, "celsius": 21.0}
                assert client.post("/readings", json=reading).status_code == 202
            process.send_signal(signal.SIGTERM)
            shown = [line for line in live.iter_lines() if line.startswith("data:")]
        logged = process.stderr.read()
    assert process.returncode in (0, -signal.SIGTERM), logged
    assert "0 readings lost" in logged
    assert "Traceback" not in logged
    assert shown[:1] == ["data: the kitchen: 21.0 °C"]
    with closing(sqlite3.connect(tmp_path / "readings.db")) as database:
        stored = database.execute("select room, count(*) from readings group by room").fetchall()
    assert stored == [("the kitchen", 20)]
