"""The example page in Chromium: the user subscribes, changes the rate and cancels."""

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, async_playwright

from reactive_aio.rsocket import Payload
from reactive_aio.rsocket.protocol.codec import decode, encode
from reactive_aio.rsocket.protocol.frames import PayloadFrame, RequestResponse
from reactive_aio.rsocket.protocol.metadata import ROUTING, write_composite, write_routing
from tests.asgi.browser import OPTIONS, find_chromium
from tests.node.packages import find_node
from tests.rsocket.websocket_peer import JSON_SETUP

ROOT = Path(__file__).parents[2]
SEPARATE = """
import asyncio, sys
sys.path.insert(0, "examples")
from rsocket_page import Totals, router
from reactive_aio.rsocket import serve

@router.route("length")
async def length(payload: str):
    return len(payload)

async def main():
    authenticate = lambda _: Totals()
    async with await serve("ws://127.0.0.1:0/prices", router,
                           origins=sys.argv[1:], authenticate=authenticate) as server:
        print(server.uri, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""
ENVIRONMENT: dict[str, str] = {}

pytestmark = [
    pytest.mark.slow,
    # One event loop is enough: the code under test runs in other processes.
    pytest.mark.asyncio(loop_factories=["asyncio"]),
    pytest.mark.timeout(150),  # npm may download packages
]


@pytest.fixture(scope="module", autouse=True)
def npm() -> None:
    """esbuild bundles the page."""
    node, _ = find_node()
    path = os.pathsep.join([str(Path(node).parent), os.environ["PATH"]])
    ENVIRONMENT.update({**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)})


@pytest.fixture(scope="module")
def chromium() -> str:
    return find_chromium()


@contextlib.asynccontextmanager
async def program(*arguments: str) -> AsyncGenerator[Process]:
    """A Python process, stopped as by Ctrl-C."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, cwd=ROOT, env=ENVIRONMENT, stdout=PIPE
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        await process.wait()


async def says(process: Process, pattern: str) -> re.Match[str]:
    """The next line of *process* that matches."""
    assert process.stdout is not None
    while line := (await process.stdout.readline()).decode():
        if found := re.search(pattern, line):
            return found
    raise AssertionError(f"it ended without a word of {pattern}")


@contextlib.asynccontextmanager
async def page_in(chromium: str) -> AsyncGenerator[Page]:
    errors: list[str] = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=chromium, args=[*OPTIONS, "--disable-dev-shm-usage"]
        )
        page = await browser.new_page(viewport={"width": 1160, "height": 700})
        page.set_default_timeout(40_000)
        page.on("pageerror", lambda error: errors.append(str(error)))
        yield page
        await browser.close()
    assert not errors


async def number(page: Page, figure: str) -> int:
    return int((await page.inner_text(f"#{figure}")).replace(",", ""))


async def reaches(page: Page, figure: str, least: int) -> None:
    await page.wait_for_function(
        "([id, n]) => Number(document.getElementById(id).textContent.replaceAll(',', '')) >= n",
        arg=[figure, least],
    )


async def shows(page: Page, figure: str, exactly: int) -> None:
    """The page draws once per frame of its screen: a number may be one frame old."""
    await page.wait_for_function(
        "([id, n]) => Number(document.getElementById(id).textContent.replaceAll(',', '')) === n",
        arg=[figure, exactly],
    )


async def rests(page: Page) -> int:
    """Wait until all requested elements have arrived and the numbers stay the same."""
    await page.wait_for_function("""() => {
        const n = (id) => document.getElementById(id).textContent;
        const now = [n("requested"), n("made"), n("received")].join();
        const settled = n("requested") === n("received");
        window.looks = now === window.seen && settled ? window.looks + 1 : 0;
        window.seen = now;
        return window.looks > 20;
    }""")
    return await number(page, "received")


@pytest.mark.thorough
async def test_a_user_subscribes_changes_the_rate_and_cancels(chromium: str) -> None:
    async with program("examples/rsocket_page.py", "--port", "0") as served:
        url = (await says(served, r"http://\S+"))[0]
        async with page_in(chromium) as page:
            await page.goto(url)
            await page.wait_for_selector("#connection[data-state=open]")

            # Elements arrive.
            await page.fill("#rate", "60")
            await page.click("#toggle")
            await says(served, "ACME: subscribed")
            await reaches(page, "received", 100)
            picture = await page.screenshot(path=os.environ.get("PICTURE"), full_page=True)
            assert len(picture) > 20_000

            # The page sets the rate: at 0 nothing is produced, not even ahead.
            await page.fill("#rate", "0")
            rested = await rests(page)
            assert await number(page, "made") == await number(page, "requested") == rested

            # Another route, at a higher rate.
            await page.click("text=GLOBEX")
            requested, made = (
                await says(served, r"ACME: cancelled; (\d+) requested, (\d+)")
            ).groups()
            assert int(requested) == int(made) == rested
            await says(served, "GLOBEX: subscribed")
            await page.fill("#rate", "200")
            await reaches(page, "received", 300)

            # Cancelling reaches the publisher in Python.
            await page.click("#toggle")
            requested, made = (
                await says(served, r"GLOBEX: cancelled; (\d+) requested, (\d+)")
            ).groups()
            assert await page.inner_text("#state") == "cancelled"
            assert 300 <= int(made) <= int(requested)
            await shows(page, "requested", int(requested))

            # Closing the tab does, too.
            await page.click("text=HOOLI")
            await page.click("#toggle")
            await says(served, "HOOLI: subscribed")
            await page.close()
            await says(served, "HOOLI: cancelled")


@pytest.mark.thorough
async def test_the_page_may_have_another_origin_if_the_server_lists_it(chromium: str) -> None:
    async with (
        program("examples/rsocket_page.py", "--port", "0") as served,
        page_in(chromium) as page,
    ):
        url = (await says(served, r"http://\S+"))[0]
        async with program("-c", SEPARATE) as strict, program("-c", SEPARATE, url) as server:
            elsewhere: Any = (await says(strict, r"ws://\S+"))[0]
            await page.goto(f"{url}/?server={elsewhere}")
            await page.wait_for_selector("#connection[data-state=lost]")

            elsewhere = (await says(server, r"ws://\S+"))[0]
            await page.goto(f"{url}/?server={elsewhere}")
            await page.wait_for_selector("#connection[data-state=open]")
            await page.fill("#rate", "200")
            await page.click("#toggle")
            await reaches(page, "received", 100)
            await page.click("#toggle")
            await says(server, "ACME: cancelled")

            # Browsers send a long message in several frames.
            answer = await page.evaluate(ASK, [elsewhere, *map(b64, (JSON_SETUP, long_request()))])
            frame = decode(b64decode(answer))
            assert isinstance(frame, PayloadFrame)
            assert frame.payload.data == b"1000000"


ASK = """([url, ...messages]) => new Promise((done, fail) => {
  const socket = new WebSocket(url);
  socket.binaryType = "arraybuffer";
  socket.onopen = () => {
    for (const each of messages) socket.send(Uint8Array.from(atob(each), (c) => c.charCodeAt(0)));
  };
  socket.onmessage = ({data}) => done(btoa(String.fromCharCode(...new Uint8Array(data))));
  socket.onclose = ({code}) => fail(new Error(`closed with ${code}`));
})"""


def b64(data: bytes) -> str:
    return b64encode(data).decode()


def long_request() -> bytes:
    route = write_composite([(ROUTING, write_routing("length"))])
    return encode(RequestResponse(1, Payload(json.dumps("x" * 1_000_000).encode(), route)))
