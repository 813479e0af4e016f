"""observe.inspector: its server with real sockets, its events, and its page in Chromium."""

import asyncio
import json
import os
import socket
import threading
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import anyio
import httpx
import pytest
from playwright.async_api import Page, async_playwright
from starlette.applications import Starlette
from starlette.routing import Mount

import reactive_aio as r
from reactive_aio import observe
from reactive_aio._core.observation import registry
from reactive_aio.asgi import from_sse
from reactive_aio.observe.inspector_feed import Feed
from tests.asgi.browser import OPTIONS, find_chromium

TOKEN = "a secret of sixteen letters"
WATCHER = "reactive_aio-observe-watch"


@pytest.fixture(autouse=True)
def no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_names", {})


async def get(url: str, **options: Any) -> httpx.Response:
    async with httpx.AsyncClient() as http:
        return await http.get(url, **options)


def states(page: observe.Inspector, flow: str = "") -> r.Flow[Any]:
    address, _, query = page.url.partition("?")
    url = f"{address}events?{query}&{urlencode({'flow': flow})}"
    return from_sse(url).map(lambda event: json.loads(event.data))


async def sent(page: observe.Inspector, data: bytes) -> bytes:
    """What the server answers to *data*."""
    reader, writer = await asyncio.open_connection(page.host, page.port)
    writer.write(data)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


async def save(order: int) -> int:
    await asyncio.Event().wait()
    return order


def orders() -> r.Flow[int]:
    return r.range(100).filter(bool).boundary(8).map_async(save, concurrency=2).name("orders")


# -- access --------------------------------------------------------------------------------------
async def test_the_page_has_no_reference_outside_and_runs_its_own_script_alone() -> None:
    async with observe.inspector() as page:
        answer = await get(page.url)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "script-src 'sha256-" in answer.headers["content-security-policy"]
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    outside = answer.text.replace("http://www.w3.org/2000/svg", "")
    assert "http" not in outside.replace("http-equiv", "")


async def test_without_a_token_it_answers_requests_of_this_machine_alone() -> None:
    async with observe.inspector() as page:
        for host in ("localhost", "127.0.0.1:1", "[::1]:8123"):
            assert (await get(page.url, headers={"host": host})).status_code == 200
        for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", ""):
            answer = await get(page.url, headers={"host": host})
            assert answer.status_code == 403
            assert "requests of this machine" in answer.json()["detail"]


async def test_with_a_token_every_request_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["/app/service.py", "--password=of the database"])
    async with observe.inspector(token=TOKEN) as page:
        assert page.url.endswith("/?token=a%20secret%20of%20sixteen%20letters")
        assert "secret" not in repr(page)
        assert (await get(page.url, headers={"host": "box.example"})).status_code == 200
        for path in ("", "events", "?token=wrong", "events?token=", "?token=\u00e4"):
            answer = await get(f"http://{page.host}:{page.port}/{path}")
            assert answer.status_code == 403
            assert "?token=" in answer.json()["detail"]
        state = await states(page).first()
    assert state["flows"] == []
    assert state["process"] == {"id": os.getpid(), "name": "service.py"}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "box.example", "192.0.2.1"])
async def test_another_host_requires_a_token(host: str) -> None:
    with pytest.raises(ValueError, match=r"other machines can reach .* token=secrets"):
        async with observe.inspector(host=host):
            pass


def test_a_short_token_is_refused() -> None:
    with pytest.raises(ValueError, match="a token of 5 characters can be guessed"):
        observe.inspector_app(token="12345")


@pytest.mark.parametrize("options", [{"every": 0}, {"stall": -1}])
def test_durations_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"observe.inspector: {next(iter(options))}"):
        observe.inspector_app(**options)


# -- the server ------------------------------------------------------------------------------------
async def test_a_port_in_use_is_reported_with_the_remedy() -> None:
    async with observe.inspector() as page:
        with pytest.raises(OSError, match=rf"port {page.port} of 127.0.0.1 is in use; port=0"):
            async with observe.inspector(port=page.port):
                pass


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", b"400"),
        (b"GET / SPDY/9\r\n\r\n", b"400"),
        ((b"GET / HTTP/1.1\r\nx: " + b"y" * 17_000)[: 16 * 1024], b"431"),
        (b"POST / HTTP/1.1\r\nhost: localhost\r\n\r\n", b"405"),
        (b"GET /other HTTP/1.1\r\nhost: localhost\r\n\r\n", b"404"),
        (b"GET /%2e%2e/x HTTP/1.1\r\nhost: localhost\r\n\r\n", b"404"),
    ],
)
async def test_other_requests_are_refused(data: bytes, status: bytes) -> None:
    async with observe.inspector() as page:
        answer = await sent(page, data)
        assert answer.startswith(b"HTTP/1.1 " + status)
        assert (await get(page.url)).status_code == 200


async def test_a_head_request_has_no_body() -> None:
    async with observe.inspector() as page:
        answer = await sent(page, b"HEAD / HTTP/1.0\r\nhost: localhost\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-length: " in head
    assert not body


async def test_a_client_that_leaves_at_once_harms_no_other() -> None:
    async with observe.inspector() as page:
        for data in (b"", b"GET /", b"GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n"):
            reader, writer = await asyncio.open_connection(page.host, page.port)
            writer.write(data)
            await writer.drain()
            writer.transport.abort()
            del reader
        assert (await get(page.url)).status_code == 200


async def test_connections_that_say_nothing_give_way() -> None:
    async with observe.inspector() as page:
        silent = [await asyncio.open_connection(page.host, page.port) for _ in range(33)]
        assert await silent[0][0].read() == b""
        assert (await get(page.url)).status_code == 200
        for _, writer in silent:
            writer.close()


async def test_connections_are_limited() -> None:
    async with observe.inspector() as page:
        opened = [await asyncio.open_connection(page.host, page.port) for _ in range(32)]
        for _, writer in opened:
            writer.write(b"GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n")
        while not (await sent(page, b"GET / HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 503"):
            await anyio.lowlevel.checkpoint()
        for _, writer in opened:
            writer.close()
            await writer.wait_closed()
        while (await sent(page, b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"))[9:12] != b"200":
            await anyio.lowlevel.checkpoint()


async def test_an_error_of_the_block_is_raised_as_it_is_and_the_port_is_free_again() -> None:
    ports: list[int] = []

    async def fail() -> None:
        async with observe.inspector() as page, states(page).stream() as stream:
            ports.append(page.port)
            await anext(stream)
            raise KeyError("of the block")

    with pytest.raises(KeyError, match="of the block"):
        await fail()
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", *ports))


# -- what is shown ---------------------------------------------------------------------------------
async def test_the_events_have_flows_with_graphs_errors_stalls_and_processors() -> None:
    news = r.MulticastProcessor[int](name="news")
    with pytest.raises(ValueError, match="invalid literal"):
        await r.just("x").boundary(2).map(int).name("imports").run()
    async with observe.inspector(every=0.01, stall=0.01) as page, orders().running():
        state = await states(page).filter(lambda each: each["flows"][1]["stalls"]).first()
    imports, flow = state["flows"]
    assert (imports["name"], imports["failed"], imports["running"]) == ("imports", 1, 0)
    assert imports["error"].startswith("ValueError in map, File ")
    assert "'x'" not in imports["error"]
    [subscription] = state["subscriptions"]
    assert state["picked"] == "orders", "imports does not run"
    assert (flow["name"], flow["running"], subscription["delivered"]) == ("orders", 1, 0)
    assert subscription["requested"] is None
    assert 0 < subscription["held"] <= 8
    assert "save (" in subscription["calls"][0]
    assert "boundary(8)" in subscription["svg"]
    assert "2 calls" in subscription["svg"]
    assert flow["stalls"][0].startswith("orders: nothing was delivered for ")
    assert flow["causes"][0].startswith("map_async(save, concurrency=2), in save (")
    assert subscription["stuck"] == flow["causes"][0]
    stuck = subscription["svg"].partition('class="stuck"')[2].partition("</g>")[0]
    assert "map_async(save, concurrency=2)" in stuck
    assert "stuck here" in stuck
    assert [each["name"] for each in state["processors"]] == ["news"]
    del news


async def test_a_stall_is_what_watch_takes_for_one() -> None:
    async with observe.inspector(every=0.01) as page:
        assert (await states(page).first())["stall"] == 10
        async with observe.watch(stall=33, block=None):
            assert (await states(page).first())["stall"] == 33
        assert (await states(page).first())["stall"] == 10
    async with observe.watch(stall=33, block=None), observe.inspector(stall=2) as page:
        assert (await states(page).first())["stall"] == 2


def test_reports_of_the_same_thing_are_counted() -> None:
    feed = Feed(1.0, None)
    for seconds in (0.3, 1.2, 0.7):
        feed._add_report(f"the process did not run for {seconds} s: it was stopped")
    for number in range(30):
        feed._add_report(f"the event loop is blocked for more than 0.1 s by f (app.py:{number})")
    reports = list(feed._reports.values())
    assert len(reports) == 20, "the oldest are forgotten"
    feed._add_report("the event loop is blocked for more than 0.2 s by f (app.py:15)")
    last = list(feed._reports.values())[-1]
    assert (last["count"], last["text"]) == (2, last["text"].replace("0.1", "0.2"))
    assert last["first"] <= last["at"]


async def test_rates_are_those_since_the_last_look() -> None:
    emitted = r.UnicastProcessor[int](capacity=1000)
    async with (
        observe.inspector(every=0.01) as page,
        emitted.name("counted").running(),
        states(page).stream() as stream,
    ):
        seen = [await anext(stream)]
        for i in range(100):
            emitted.try_emit(i)
        while seen[-1]["subscriptions"][0]["delivered"] < 100:
            seen.append(await anext(stream))
        seen.append(await anext(stream))
    assert seen[0]["flows"][0]["rate"] is None
    assert seen[-2]["flows"][0]["rate"] > 0
    assert "/s" in seen[-2]["subscriptions"][0]["svg"]
    assert seen[-1]["flows"][0]["rate"] == 0
    emitted.complete()


async def test_looking_disturbs_no_other_rates() -> None:
    flow = r.never().name("quiet")
    async with observe.inspector(every=0.01) as page, flow.running():
        [(_, progress)] = registry.named_flow("quiet").subscriptions()
        before = progress.at
        await states(page).take(3).run()
        assert progress.at == before


async def test_many_subscriptions_are_counted_and_some_are_shown() -> None:
    flow = r.never().name("many")
    async with observe.inspector() as page, AsyncExitStack() as stack:
        for _ in range(20):
            await stack.enter_async_context(flow.running())
        state = await states(page).first()
        [many] = state["flows"]
        assert (many["running"], len(state["subscriptions"])) == (20, 8)


async def test_the_graphs_are_those_of_the_flow_that_is_picked() -> None:
    one, other = r.never().name("one"), r.never().boundary(7).name("other & co")
    async with observe.inspector() as page, one.running(), other.running():
        state = await states(page, "other & co").first()
        assert state["picked"] == "other & co"
        assert "boundary(7)" in state["subscriptions"][0]["svg"]
        assert (await states(page, "unknown").first())["picked"] == "one"


# -- nothing is paid when nothing looks ------------------------------------------------------------
def watchers() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name == WATCHER]


async def test_nothing_runs_until_a_page_is_open_and_after_it_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[int] = []

    def counted() -> list[registry.NamedFlow]:
        looks.append(1)
        return registry.named_flows()

    monkeypatch.setattr("reactive_aio.observe.inspector_feed.named_flows", counted)
    async with observe.inspector(every=0.01) as page, orders().running():
        await get(page.url)
        assert (looks, watchers()) == ([], [])
        async with states(page).stream() as one, states(page).stream() as two:
            await anext(one)
            await anext(two)
            assert watchers() == [WATCHER]
        while watchers():
            await anyio.lowlevel.checkpoint()
        count = len(looks)
        await get(page.url)
        assert len(looks) == count


# -- in an application -----------------------------------------------------------------------------
async def test_it_can_be_mounted() -> None:
    app = Starlette(routes=[Mount("/inspector", observe.inspector_app(token=TOKEN))])
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://box.example") as http:
        assert (await http.get("/inspector/")).status_code == 403
        page = await http.get("/inspector/", params={"token": TOKEN})
        assert "<title>Flows</title>" in page.text
        assert (await http.get("/inspector/other", params={"token": TOKEN})).status_code == 404


@pytest.mark.parametrize(
    ("client", "headers", "status"),
    [
        ("127.0.0.1", {}, 200),
        ("::1", {}, 200),
        ("::ffff:127.0.0.1", {}, 200),
        ("203.0.113.9", {}, 403),
        ("127.0.0.1", {"x-forwarded-for": "203.0.113.9"}, 403),
        ("127.0.0.1", {"forwarded": "for=203.0.113.9"}, 403),
        (None, {}, 403),  # a Unix socket, such as that of a proxy
    ],
)
async def test_without_a_token_it_answers_clients_of_this_machine_alone(
    client: str | None, headers: dict[str, str], status: int
) -> None:
    """Anyone can write ``Host: localhost``, and proxies write it for everyone."""
    address: Any = None if client is None else (client, 4711)
    transport = httpx.ASGITransport(observe.inspector_app(), client=address)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        assert (await http.get("/", headers=headers)).status_code == status


# -- the page --------------------------------------------------------------------------------------
@pytest.fixture
def chromium() -> str:
    return find_chromium()


@asynccontextmanager
async def opened(chromium: str, url: str, **options: Any) -> AsyncGenerator[tuple[Page, list[str]]]:
    """The page at *url*, and the addresses that it has requested."""
    errors: list[str] = []
    requested: list[str] = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=chromium, args=[*OPTIONS, "--disable-dev-shm-usage"]
        )
        page = await browser.new_page(viewport={"width": 1280, "height": 900}, **options)
        page.set_default_timeout(40_000)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text))
        page.on("request", lambda request: requested.append(request.url))
        await page.goto(url)
        yield page, requested
        await browser.close()
    assert not errors


async def every_hundredth() -> AsyncIterator[int]:
    for i in range(1_000_000):
        yield i
        await anyio.sleep(0.01)


@pytest.mark.slow
async def test_a_user_sees_flows_graphs_errors_and_what_stalls(chromium: str) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        await r.just("<b>x</b>").boundary(2).map(int).name("imports").run()
    moving = r.from_aiter(every_hundredth).boundary(8).name("moving")
    async with (
        observe.inspector(every=0.05, stall=0.05, token=TOKEN) as inspector,
        orders().running(),
        moving.running(),
        opened(chromium, inspector.url, color_scheme="dark") as (page, requested),
    ):
        await page.wait_for_selector('nav [data-flow="orders"] .stalled')
        assert await page.inner_text("#state") == "live"
        reported = await page.inner_text("#doctor")
        assert "nothing was delivered for" in reported
        assert "orders: stuck at map_async(save, concurrency=2), in save (" in reported
        names = "() => [...document.querySelectorAll('nav button')].map((each) => each.title)"
        assert await page.evaluate(names) == ["orders", "imports", "moving"], "what stalls is first"
        await page.click('[data-flow="orders"]')
        await page.wait_for_selector("#detail svg .stuck")
        assert "orders" in await page.inner_text("#detail h3")
        assert "stuck here" in (await page.text_content("#detail svg .stuck") or "")
        await page.fill("#filter", "MOV")
        await page.wait_for_function("() => document.querySelectorAll('nav button').length == 1")
        await page.fill("#filter", "")
        await page.click('[data-flow="moving"]')
        await page.wait_for_function(
            "() => [...document.querySelectorAll('#detail svg text')]"
            ".some((text) => /\\b[1-9][\\d.]*\\/s/.test(text.textContent))"
        )
        await page.click('[data-flow="imports"]')
        await page.wait_for_selector(".error pre")
        assert "ValueError in map, File " in await page.inner_text(".error pre")
        # What is selected to be copied stays as it is: here, the report of the doctor.
        await page.evaluate(
            "getSelection().selectAllChildren(document.querySelector('.error pre'))"
        )
        selected = "getSelection().toString().startsWith('ValueError')"
        await page.wait_for_function(f"() => (window.n = (window.n ?? 0) + 1) > 30 && {selected}")
        await page.evaluate("getSelection().empty()")
        await page.focus('[data-flow="orders"]')
        await page.keyboard.press("Enter")
        await page.wait_for_function(
            "() => document.querySelector('#detail svg')?.textContent.includes('boundary(8)')"
        )
        bar = page.locator("#detail svg rect.half, #detail svg rect.full").first
        assert await bar.get_attribute("width") is not None
        await page.click("#pause")
        await page.wait_for_function(
            "() => document.getElementById('state').textContent == 'paused'"
        )
        while watchers():  # the process looks no more
            await anyio.lowlevel.checkpoint()
        assert {address.split("/")[2] for address in requested if address.startswith("http")} == {
            f"127.0.0.1:{inspector.port}"
        }


@pytest.mark.thorough
@pytest.mark.slow
async def test_on_a_narrow_screen_a_graph_is_readable_and_has_no_gaps(chromium: str) -> None:
    async with (
        observe.inspector(every=0.05, token=TOKEN) as inspector,
        orders().running(),
        opened(chromium, inspector.url) as (page, _),
    ):
        await page.set_viewport_size({"width": 320, "height": 900})
        await page.wait_for_selector("#detail svg")
        picture = """() => {
            const svg = document.querySelector('#detail svg'), drawn = svg.viewBox.baseVal;
            const shown = svg.getBoundingClientRect(), root = document.documentElement;
            return {
                gap: shown.height - drawn.height * shown.width / drawn.width,
                width: shown.width, natural: drawn.width,
                overflow: root.scrollWidth - root.clientWidth,
            };
        }"""
        found = await page.evaluate(picture)
        assert abs(found["gap"]) < 1
        assert found["width"] >= min(found["natural"], 480) - 1
        assert found["overflow"] == 0


@pytest.mark.slow
async def test_on_a_narrow_screen_the_graph_opens_where_one_taps(chromium: str) -> None:
    async with AsyncExitStack() as stack:
        for number in range(20):
            flow = r.interval(0.5).boundary(4).name(f"flow {number:02}")
            await stack.enter_async_context(flow.running())
        inspector = await stack.enter_async_context(observe.inspector(every=0.5, token=TOKEN))
        page, _ = await stack.enter_async_context(opened(chromium, inspector.url))
        await page.set_viewport_size({"width": 400, "height": 800})
        await page.click('[data-flow="flow 15"]')
        await page.wait_for_function(
            "() => document.querySelector('#detail svg')?.textContent.includes('flow 15')"
        )
        await page.wait_for_function("() => tapped === null")  # it is at its place
        places = """() => ['[data-flow="flow 15"]', "#detail svg"].map(
            each => document.querySelector(each).getBoundingClientRect().y
        )"""  # at one time, since each figure that arrives draws the graph again
        tapped, graph = await page.evaluate(places)
        assert 0 <= tapped < graph < 400
        assert await page.evaluate("document.getElementById('detail').previousSibling.title") == (
            "flow 15"
        )
        await page.set_viewport_size({"width": 1200, "height": 800})
        await page.wait_for_function(
            "() => document.getElementById('detail').parentElement.tagName == 'MAIN'"
        )
