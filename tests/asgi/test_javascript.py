"""The JavaScript module in Node and in Chromium, with a real server."""

import json
import re
import subprocess
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests.asgi.browser import visit
from tests.asgi.serving import ROOT, Service, service
from tests.node.packages import find_node, unavailable

pytestmark = pytest.mark.slow

MODULE = files("reactive_aio.asgi") / "browser" / "reactive.js"

EXPECTED: dict[str, Any] = {
    "all": [*range(100)],
    "oneByOne": [*range(5)],
    "breaking": [0, 1, 2],
    "demand": [0, 1, 2],
    "wrongDemand": [400, "3.9"],
    "failing": ["StreamError", 500, "the stream failed"],
    "unknown": ["StreamError", 404, "there is no such route"],
    "side_by_side": [50, 100, 150],
    "both_ways": ["A", "B", "C"],
    "cancelled_source": [[[1, 2, 3]], True, 3],
    "failing_source": ["StreamError", 500, "the stream failed"],
    "nothing_published": ["StreamError", 500, "the stream failed"],
    "link": 50,
    "closing": [
        ["StreamError", 503, "the socket was closed"],
        ["StreamError", 503, "the socket is closed"],
    ],
    "unreachable": None,
}


@pytest.fixture(scope="module")
def serving() -> Iterator[Service]:
    with service("starlette") as running:
        running.get("/stat")
        yield running


def node_with_websocket() -> list[str]:
    """Return the command of a Node with a WebSocket: 22, or 20.10 with an option."""
    node, _ = find_node()
    found = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    version = [int(each) for each in re.findall(r"\d+", found)]
    if version >= [22]:
        return [node]
    if version >= [20, 10]:
        return [node, "--experimental-websocket"]
    return unavailable(f"Node.js {found.strip()} has no WebSocket: 20.10 or newer is needed")


@pytest.mark.thorough
def test_in_node(serving: Service) -> None:
    client = ROOT / "tests" / "asgi" / "client.mjs"
    address = serving.url.replace("http", "ws")
    command = [*node_with_websocket(), str(client), address, str(MODULE)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert ended.returncode == 0, ended.stderr
    found = dict(json.loads(line) for line in ended.stdout.splitlines())
    assert found.pop("unreachable")[:2] == ["StreamError", 503]
    assert found == {name: each for name, each in EXPECTED.items() if name != "unreachable"}
    stat = json.loads(serving.get("/stat"))
    assert (stat["open"], stat["outstanding"]) == (0, 0)


def test_in_a_browser(serving: Service, tmp_path: Path) -> None:
    found = visit(f"{serving.url}/page", "window.found?.over", tmp_path)
    assert found == {
        "counted": [*range(40)],
        "shouted": ["FROM", "A PAGE"],
        "partial": [*range(6)],
        "events": [[each, str(each)] for each in range(6)],
        "lines": [0, 1, 2, 3],
        "over": True,
    }
